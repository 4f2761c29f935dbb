//! Passwords: checking a client's answer to the scramble, by `mysql_native_password` and
//! `caching_sha2_password`.
//!
//! The server never stores a password. Native stores SHA1(SHA1(password)), which is all that method needs.
//! For sha2 a salted, iterated hash is stored, and SHA256(SHA256(password)) is kept in memory once a client
//! has proved the password in clear text over TLS; until then the fast answer cannot be judged and the
//! client is asked for the full exchange. Comparisons take the same time wherever they differ.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, RwLock};

use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::handshake::SCRAMBLE_LENGTH;

/// How often the stored sha2 hash is iterated; MySQL's figure.
const SHA2_ROUNDS: u32 = 5000;
/// The longest password in clear text that is looked at.
pub const PASSWORD_MAX: usize = 256;

/// A login method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthPlugin {
    /// SHA-1 based, no TLS needed; the method of MySQL 5.
    NativePassword,
    /// SHA-256 based, the default of MySQL 8.
    CachingSha2Password,
}

impl AuthPlugin {
    /// The method's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::NativePassword => "mysql_native_password",
            Self::CachingSha2Password => "caching_sha2_password",
        }
    }

    /// The method with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "mysql_native_password" => Some(Self::NativePassword),
            "caching_sha2_password" => Some(Self::CachingSha2Password),
            _ => None,
        }
    }
}

/// What is stored about an account's password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredPassword {
    /// No password: only an empty answer is right.
    Empty,
    /// SHA1(SHA1(password)).
    Native([u8; 20]),
    /// A salted hash of many rounds.
    Sha2 {
        /// Random bytes of this account.
        salt: [u8; 20],
        /// The hash.
        hash: [u8; 32],
    },
}

impl StoredPassword {
    /// What to store for `password` under `plugin`.
    pub fn new(plugin: AuthPlugin, password: &str, salt: [u8; 20]) -> Self {
        if password.is_empty() {
            return Self::Empty;
        }
        match plugin {
            AuthPlugin::NativePassword => Self::Native(sha1(&[&sha1(&[password.as_bytes()])])),
            AuthPlugin::CachingSha2Password => Self::Sha2 { salt, hash: stretch(password.as_bytes(), &salt) },
        }
    }
}

/// One account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The method this account logs in with.
    pub plugin: AuthPlugin,
    /// Its password.
    pub password: StoredPassword,
}

/// The accounts of this server and the digests of those that have logged in.
#[derive(Debug, Default)]
pub struct Accounts {
    accounts: RwLock<HashMap<String, Account>>,
    proved: Mutex<HashMap<String, [u8; 32]>>,
}

impl Accounts {
    /// The accounts of a new server: `root` with an empty password.
    pub fn with_root() -> Self {
        let accounts = Self::default();
        accounts.set(
            "root",
            Account { plugin: AuthPlugin::CachingSha2Password, password: StoredPassword::Empty },
        );
        accounts
    }

    /// Creates or replaces an account; an old password stops working at once.
    pub fn set(&self, user: &str, account: Account) {
        self.accounts.write().unwrap_or_else(PoisonError::into_inner).insert(user.to_owned(), account);
        self.proved.lock().unwrap_or_else(PoisonError::into_inner).remove(user);
    }

    /// The account of `user`.
    pub fn get(&self, user: &str) -> Option<Account> {
        self.accounts.read().unwrap_or_else(PoisonError::into_inner).get(user).cloned()
    }

    /// Judges a fast sha2 answer; false also when the password has not been proved since the server started.
    pub fn check_sha2_fast(&self, user: &str, scramble: &[u8; SCRAMBLE_LENGTH], answer: &[u8]) -> bool {
        let proved = self.proved.lock().unwrap_or_else(PoisonError::into_inner);
        proved.get(user).is_some_and(|double| check_sha2_answer(double, scramble, answer))
    }

    /// Judges a password in clear text and, when right, remembers its digest for fast logins.
    pub fn check_sha2_full(&self, user: &str, stored: &StoredPassword, password: &[u8]) -> bool {
        let right = match stored {
            StoredPassword::Empty => password.is_empty(),
            StoredPassword::Native(_) => false,
            StoredPassword::Sha2 { salt, hash } => {
                password.len() <= PASSWORD_MAX && same(&stretch(password, salt), hash)
            }
        };
        if right {
            let double = sha256(&[&sha256(&[password])]);
            self.proved.lock().unwrap_or_else(PoisonError::into_inner).insert(user.to_owned(), double);
        }
        right
    }
}

/// Judges a native answer: SHA1(password) XOR SHA1(scramble, SHA1(SHA1(password))).
pub fn check_native_answer(stored: &[u8; 20], scramble: &[u8; SCRAMBLE_LENGTH], answer: &[u8]) -> bool {
    let Ok(answer) = <[u8; 20]>::try_from(answer) else { return false };
    let mut mask = sha1(&[scramble, stored]);
    mask.iter_mut().zip(answer).for_each(|(m, a)| *m ^= a);
    same(&sha1(&[&mask]), stored)
}

/// Judges a fast sha2 answer: SHA256(password) XOR SHA256(SHA256(SHA256(password)), scramble).
fn check_sha2_answer(double: &[u8; 32], scramble: &[u8; SCRAMBLE_LENGTH], answer: &[u8]) -> bool {
    let Ok(answer) = <[u8; 32]>::try_from(answer) else { return false };
    let mut mask = sha256(&[double, scramble]);
    mask.iter_mut().zip(answer).for_each(|(m, a)| *m ^= a);
    same(&sha256(&[&mask]), double)
}

/// Makes random scramble bytes: none is zero (they end strings) or `$`, as clients expect.
pub fn make_scramble(random: &mut dyn FnMut(&mut [u8])) -> [u8; SCRAMBLE_LENGTH] {
    let mut scramble = [0; SCRAMBLE_LENGTH];
    random(&mut scramble);
    for byte in &mut scramble {
        *byte &= 0x7f;
        if *byte == 0 || *byte == b'$' {
            *byte += 1;
        }
    }
    scramble
}

fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut hash = Sha1::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

/// The iterated hash that is stored for sha2 accounts.
fn stretch(password: &[u8], salt: &[u8; 20]) -> [u8; 32] {
    let mut hash = sha256(&[salt, password]);
    for round in 0..SHA2_ROUNDS {
        hash = sha256(&[&hash, password, salt, &round.to_le_bytes()]);
    }
    hash
}

/// Compares without stopping at the first difference.
fn same<const N: usize>(a: &[u8; N], b: &[u8; N]) -> bool {
    a.iter().zip(b).fold(0, |diff, (x, y)| diff | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRAMBLE: [u8; 20] = *b"abcdefghijklmnopqrst";

    #[test]
    fn native_answers_are_judged() {
        let StoredPassword::Native(stored) =
            StoredPassword::new(AuthPlugin::NativePassword, "secret", [0; 20])
        else {
            panic!("native account expected");
        };
        let single = sha1(&[b"secret"]);
        let mut answer = sha1(&[&SCRAMBLE, &stored]);
        answer.iter_mut().zip(single).for_each(|(a, s)| *a ^= s);
        assert!(check_native_answer(&stored, &SCRAMBLE, &answer));
        assert!(!check_native_answer(&stored, b"bbcdefghijklmnopqrst", &answer));
        assert!(!check_native_answer(&stored, &SCRAMBLE, &answer[1..]));
        assert!(!check_native_answer(&stored, &SCRAMBLE, b""));
    }

    #[test]
    fn fast_sha2_works_only_after_the_password_was_proved() {
        let accounts = Accounts::default();
        let password = StoredPassword::new(AuthPlugin::CachingSha2Password, "secret", [9; 20]);
        let account = Account { plugin: AuthPlugin::CachingSha2Password, password };
        accounts.set("u", account.clone());
        let single = sha256(&[b"secret"]);
        let mut answer = sha256(&[&sha256(&[&single]), &SCRAMBLE]);
        answer.iter_mut().zip(single).for_each(|(a, s)| *a ^= s);
        assert!(!accounts.check_sha2_fast("u", &SCRAMBLE, &answer));
        assert!(!accounts.check_sha2_full("u", &account.password, b"wrong"));
        assert!(accounts.check_sha2_full("u", &account.password, b"secret"));
        assert!(accounts.check_sha2_fast("u", &SCRAMBLE, &answer));
        accounts.set("u", account);
        assert!(
            !accounts.check_sha2_fast("u", &SCRAMBLE, &answer),
            "a changed password must not stay cached"
        );
    }

    #[test]
    fn scrambles_hold_no_byte_that_ends_a_string() {
        let mut fill = 0_u8;
        let scramble = make_scramble(&mut |bytes| {
            bytes.iter_mut().for_each(|b| {
                *b = fill;
                fill = fill.wrapping_add(36);
            });
        });
        assert!(scramble.iter().all(|&b| b != 0 && b != b'$' && b < 128), "{scramble:?}");
    }
}
