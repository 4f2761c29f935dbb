//! Login: the conversation that decides whether a client may come in, without any I/O.
//!
//! States: *first answer* (the client's response to the greeting), *switched* (it was asked to use its
//! account's method with a new scramble), *full* (sha2 over TLS: the password itself is due). Each packet
//! of the client moves the state once and yields a [`LoginStep`]; a login takes at most three packets, so
//! it cannot go on for ever.
//!
//! Unknown users walk the same path as known ones with a password nobody has, so that names cannot be
//! probed. A client whose plugin is not its account's (some client libraries answer with a stand-in name
//! when several threads load the plugin at once) is asked to switch instead of being refused.

use super::auth::{Account, Accounts, AuthPlugin, StoredPassword, check_native_answer};
use super::handshake::{HandshakeResponse, SCRAMBLE_LENGTH, encode_auth_switch};
use crate::error::{ErrorCode, MySqlError};

/// What the server does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginStep {
    /// Send this payload and wait for the client's next packet.
    Ask(Vec<u8>),
    /// Let the client in; some methods want a packet of their own before the OK.
    Accept {
        /// The payload to send before the OK.
        before_ok: Option<Vec<u8>>,
    },
    /// Send this error and end the connection.
    Refuse(MySqlError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Answer,
    Full,
    Over,
}

/// One login in progress.
#[derive(Debug)]
pub struct Login<'a> {
    accounts: &'a Accounts,
    user: &'a str,
    host: &'a str,
    tls: bool,
    account: Account,
    known: bool,
    scramble: [u8; SCRAMBLE_LENGTH],
    stage: Stage,
}

impl<'a> Login<'a> {
    /// Judges the client's first answer, which was made with `scramble`; `fresh` is the scramble for a
    /// switch.
    pub fn begin(
        accounts: &'a Accounts,
        response: &'a HandshakeResponse,
        host: &'a str,
        tls: bool,
        scramble: [u8; SCRAMBLE_LENGTH],
        fresh: [u8; SCRAMBLE_LENGTH],
    ) -> (Self, LoginStep) {
        let found = accounts.get(&response.user);
        let known = found.is_some();
        let account = found.unwrap_or(Account {
            plugin: AuthPlugin::CachingSha2Password,
            password: StoredPassword::Sha2 { salt: [0; 20], hash: [0; 32] },
        });
        let stage = Stage::Answer;
        let mut login = Self { accounts, user: &response.user, host, tls, account, known, scramble, stage };
        let plugin = response.plugin.as_deref().unwrap_or("mysql_native_password");
        // Only a plugin we know: a client's stand-in plugin waits for the switch and loses count without it.
        let nothing_to_prove = login.account.password == StoredPassword::Empty
            && response.auth_response.is_empty()
            && AuthPlugin::from_name(plugin).is_some();
        let step = if plugin == login.account.plugin.name() || nothing_to_prove {
            login.judge(&response.auth_response)
        } else {
            login.scramble = fresh;
            let mut packet = Vec::new();
            encode_auth_switch(&mut packet, login.account.plugin.name(), &fresh);
            LoginStep::Ask(packet)
        };
        (login, step)
    }

    /// Judges the next packet of the client.
    pub fn on_packet(&mut self, packet: &[u8]) -> LoginStep {
        match self.stage {
            Stage::Answer => self.judge(packet),
            Stage::Full => self.judge_full(packet),
            Stage::Over => self.refuse(true),
        }
    }

    fn judge(&mut self, answer: &[u8]) -> LoginStep {
        self.stage = Stage::Over;
        // For an empty password some clients send nothing and some a lone zero byte.
        let empty = answer.is_empty() || answer == [0];
        match &self.account.password {
            StoredPassword::Empty if empty => self.accept(None),
            StoredPassword::Empty => self.refuse(true),
            _ if empty => self.refuse(false),
            StoredPassword::Native(stored) => {
                if check_native_answer(stored, &self.scramble, answer) {
                    self.accept(None)
                } else {
                    self.refuse(true)
                }
            }
            StoredPassword::Sha2 { .. } => {
                if self.accounts.check_sha2_fast(self.user, &self.scramble, answer) {
                    return self.accept(Some(vec![1, 3]));
                }
                if !self.tls {
                    return self.refuse_without_tls();
                }
                self.stage = Stage::Full;
                LoginStep::Ask(vec![1, 4])
            }
        }
    }

    fn judge_full(&mut self, packet: &[u8]) -> LoginStep {
        self.stage = Stage::Over;
        let password = packet.strip_suffix(&[0]).unwrap_or(packet);
        let right = self.accounts.check_sha2_full(self.user, &self.account.password, password);
        if right { self.accept(None) } else { self.refuse(!password.is_empty()) }
    }

    fn accept(&self, before_ok: Option<Vec<u8>>) -> LoginStep {
        if self.known { LoginStep::Accept { before_ok } } else { self.refuse(true) }
    }

    fn refuse(&self, password: bool) -> LoginStep {
        let used = if password { "YES" } else { "NO" };
        LoginStep::Refuse(MySqlError::with(ErrorCode::AccessDenied, &[&self.user, &self.host, &used]))
    }

    fn refuse_without_tls(&self) -> LoginStep {
        let text = format!(
            "Access denied for user '{}'@'{}' (using password: YES): this login needs TLS, because \
             caching_sha2_password must see the password once; connect with TLS (for example --ssl)",
            self.user, self.host
        );
        LoginStep::Refuse(MySqlError::text(ErrorCode::AccessDenied, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(user: &str, plugin: &str, answer: &[u8]) -> HandshakeResponse {
        HandshakeResponse {
            user: user.to_owned(),
            plugin: Some(plugin.to_owned()),
            auth_response: answer.to_vec(),
            ..HandshakeResponse::default()
        }
    }

    fn accounts() -> Accounts {
        let accounts = Accounts::with_root();
        for (user, plugin) in [("n", AuthPlugin::NativePassword), ("s", AuthPlugin::CachingSha2Password)] {
            accounts.set(user, Account { plugin, password: StoredPassword::new(plugin, "pw", [1; 20]) });
        }
        accounts
    }

    fn code(step: &LoginStep) -> u16 {
        match step {
            LoginStep::Refuse(error) => error.code,
            other => panic!("refusal expected, got {other:?}"),
        }
    }

    #[test]
    fn an_empty_password_comes_in_by_any_plugin_name() {
        let accounts = accounts();
        for plugin in ["caching_sha2_password", "mysql_native_password", "dummy_fallback_auth"] {
            for answer in [&b""[..], b"\0"] {
                let response = response("root", plugin, answer);
                let (mut login, step) = Login::begin(&accounts, &response, "h", false, [1; 20], [2; 20]);
                let step = if matches!(step, LoginStep::Ask(_)) { login.on_packet(answer) } else { step };
                assert_eq!(step, LoginStep::Accept { before_ok: None }, "{plugin}");
            }
        }
    }

    #[test]
    fn a_foreign_plugin_is_asked_to_switch() {
        let accounts = accounts();
        let response = response("n", "dummy_fallback_auth", b"");
        let (mut login, step) = Login::begin(&accounts, &response, "h", false, [1; 20], [2; 20]);
        let LoginStep::Ask(packet) = step else { panic!("switch expected") };
        assert_eq!(packet[0], 0xfe);
        assert!(packet.windows(21).any(|w| w == b"mysql_native_password"));
        assert_eq!(code(&login.on_packet(b"")), 1045);
        assert_eq!(code(&login.on_packet(b"again")), 1045);
    }

    #[test]
    fn sha2_goes_the_full_way_over_tls_only() {
        let accounts = accounts();
        let response = response("s", "caching_sha2_password", &[7; 32]);
        let (_, step) = Login::begin(&accounts, &response, "h", false, [1; 20], [2; 20]);
        let LoginStep::Refuse(error) = step else { panic!("refusal expected") };
        assert!(error.message.contains("TLS"), "{}", error.message);
        let (mut login, step) = Login::begin(&accounts, &response, "h", true, [1; 20], [2; 20]);
        assert_eq!(step, LoginStep::Ask(vec![1, 4]));
        assert_eq!(login.on_packet(b"pw\0"), LoginStep::Accept { before_ok: None });
        let (mut login, _) = Login::begin(&accounts, &response, "h", true, [1; 20], [2; 20]);
        assert_eq!(code(&login.on_packet(b"wrong\0")), 1045);
    }

    #[test]
    fn unknown_users_walk_the_same_path() {
        let accounts = accounts();
        let response = response("nobody", "caching_sha2_password", &[7; 32]);
        let (mut login, step) = Login::begin(&accounts, &response, "h", true, [1; 20], [2; 20]);
        assert_eq!(step, LoginStep::Ask(vec![1, 4]));
        assert_eq!(code(&login.on_packet(b"pw\0")), 1045);
    }
}
