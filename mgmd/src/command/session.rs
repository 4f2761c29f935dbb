//! Lines in, replies out: the part of `nucdb mgm` that is not a terminal.

use super::parse::{Command, Format, help};
use super::render;
use signals::mgm::{MgmConf, MgmReq};
use transporter::mgm_link::{BlockingMgmClient, MgmError};

/// What a line led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What to print; without a line end, empty if there is nothing to say.
    pub text: String,
    /// 0, or what a one-shot client exits with.
    pub exit_code: u8,
    /// The client is to end.
    pub is_quit: bool,
}

impl Reply {
    fn good(text: String) -> Reply {
        Reply { text, exit_code: 0, is_quit: false }
    }
}

/// A client's session with a management server.
#[derive(Debug)]
pub struct Session {
    connect_string: String,
    format: Format,
    client: Option<BlockingMgmClient>,
}

impl Session {
    /// A session that connects when it first needs to.
    pub fn new(connect_string: &str, format: Format) -> Session {
        Session { connect_string: connect_string.to_owned(), format, client: None }
    }

    /// Where the session is connected, for a greeting; connects.
    pub fn connect(&mut self) -> Result<String, MgmError> {
        let connect_string = self.connect_string.clone();
        let server = self.client()?.server();
        Ok(format!(
            "Connected to management server {} of cluster {} at {connect_string} (release {})",
            server.node, server.cluster, server.release
        ))
    }

    /// Runs one command.
    pub fn execute(&mut self, line: &str) -> Reply {
        match self.run(line) {
            Ok(reply) => reply,
            Err(error) => Reply { text: render::error(&error, self.format), exit_code: 1, is_quit: false },
        }
    }

    fn run(&mut self, line: &str) -> Result<Reply, MgmError> {
        let request = match Command::parse(line)? {
            Command::Empty => return Ok(Reply::good(String::new())),
            Command::Quit => return Ok(Reply { text: String::new(), exit_code: 0, is_quit: true }),
            Command::Help(topic) => {
                return Ok(Reply::good(render::line(help(topic.as_deref())?, self.format)));
            }
            Command::Connect(to) => {
                self.client = None;
                if let Some(to) = to {
                    self.connect_string = to;
                }
                let greeting = self.connect()?;
                return Ok(Reply::good(render::line(greeting, self.format)));
            }
            Command::Show => MgmReq::Show,
            Command::Status(target) => MgmReq::Status(target),
            Command::Stop { target, is_abort, is_force } => MgmReq::Stop { target, is_abort, is_force },
            Command::Shutdown => MgmReq::Shutdown,
            Command::ReportMemoryUsage(target) => MgmReq::ReportMemoryUsage(target),
            Command::ClusterLogInfo => MgmReq::ClusterLogInfo,
        };
        let conf = self.ask(request)?;
        let (text, is_good) = render::answer(&conf, self.format);
        Ok(Reply { text, exit_code: u8::from(!is_good), is_quit: false })
    }

    /// Asks; when the link turns out to be lost, connects again and asks once more if asking twice does no
    /// harm.
    fn ask(&mut self, request: MgmReq) -> Result<MgmConf, MgmError> {
        let is_harmless = !matches!(request, MgmReq::Stop { .. } | MgmReq::Shutdown);
        let had_client = self.client.is_some();
        match self.client()?.request(request.clone()) {
            Err(error) if error.is_link_trouble() => {
                self.client = None;
                if had_client && is_harmless { self.client()?.request(request) } else { Err(error) }
            }
            // A server that is about to stop waits for us to hang up.
            Ok(MgmConf::Stopped(outcomes)) => {
                self.client = None;
                Ok(MgmConf::Stopped(outcomes))
            }
            answer => answer,
        }
    }

    fn client(&mut self) -> Result<&BlockingMgmClient, MgmError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => BlockingMgmClient::connect(&self.connect_string, "nucdb mgm")?,
        };
        Ok(self.client.insert(client))
    }
}

/// Splits a one-shot script (`-e "SHOW; ALL STATUS"`) into commands.
pub fn split_script(script: &str) -> Vec<&str> {
    script.split([';', '\n']).map(str::trim).filter(|c| !c.is_empty()).collect()
}
