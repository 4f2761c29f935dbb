//! From a line to a [`Command`].

use signals::ErrorCode;
use signals::ids::NodeId;
use signals::mgm::Target;
use transporter::mgm_link::MgmError;

/// How answers are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// One management command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Nothing but blanks.
    Empty,
    /// `SHOW`
    Show,
    /// `ALL STATUS`, `n STATUS`
    Status(Target),
    /// `ALL STOP`, `n STOP [-a] [-f]`
    Stop {
        /// Whom.
        target: Target,
        /// `-a`
        is_abort: bool,
        /// `-f`
        is_force: bool,
    },
    /// `SHUTDOWN`
    Shutdown,
    /// `ALL REPORT MEMORYUSAGE`, `n REPORT MEMORYUSAGE`
    ReportMemoryUsage(Target),
    /// `CLUSTERLOG INFO`
    ClusterLogInfo,
    /// `CONNECT [connect-string]`
    Connect(Option<String>),
    /// `HELP [command]`
    Help(Option<String>),
    /// `QUIT`, `EXIT`
    Quit,
}

/// A command of the language: its words, whether a node id or ALL goes before it, and what it does.
struct Word {
    name: &'static str,
    takes_node: bool,
    is_available: bool,
    usage: &'static str,
    help: &'static str,
}

const fn word(name: &'static str, takes_node: bool, usage: &'static str, help: &'static str) -> Word {
    Word { name, takes_node, is_available: true, usage, help }
}

const fn later(name: &'static str, takes_node: bool, usage: &'static str, help: &'static str) -> Word {
    Word { name, takes_node, is_available: false, usage, help }
}

/// The whole language, in the order HELP lists it.
const WORDS: &[Word] = &[
    word("SHOW", false, "SHOW", "Nodes by type: id, address, release, node group, * for the master."),
    word("STATUS", true, "{n|ALL} STATUS", "State and start phase of a node or of all data nodes."),
    word(
        "STOP",
        true,
        "{n|ALL} STOP [-a] [-f]",
        "Stop a node or all data nodes; -a at once and unchecked, -f although others start or stop.",
    ),
    word("SHUTDOWN", false, "SHUTDOWN", "Stop all data nodes together, then the management server."),
    word("REPORT", true, "{n|ALL} REPORT MEMORYUSAGE", "Memory in use on a data node or on all."),
    word("CLUSTERLOG", false, "CLUSTERLOG INFO", "Where the cluster log is and how it is rotated."),
    word(
        "CONNECT",
        false,
        "CONNECT [host[:port][,host[:port]]]",
        "Connect to a management server, again or to another.",
    ),
    word("HELP", false, "HELP [command]", "This list, or one command."),
    word("QUIT", false, "QUIT", "Leave the client."),
    word("EXIT", false, "EXIT", "Leave the client."),
    later("START", true, "{n|ALL} START", "Start a node that was started with --nostart."),
    later("RESTART", true, "{n|ALL} RESTART [-n] [-i] [-a] [-f]", "Restart a node or all data nodes."),
    later("ROLLING", false, "ROLLING RESTART", "Restart all data nodes one after another, in a safe order."),
    later("CREATE", false, "CREATE NODEGROUP n[,n...]", "Make a node group of new data nodes."),
    later("DROP", false, "DROP NODEGROUP n", "Drop an empty node group."),
    later("ENTER", false, "ENTER SINGLE USER MODE n", "Let only one API node in."),
    later("EXITSINGLE", false, "EXIT SINGLE USER MODE", "Let all API nodes in again."),
    later("STARTBACKUP", false, "START BACKUP [id]", "Back up the cluster."),
    later("ABORT", false, "ABORT BACKUP id", "Abort a backup."),
    later("NODELOG", true, "n NODELOG DEBUG {ON|OFF}", "Debug log of a node."),
    later("DUMP", true, "{n|ALL} DUMP code", "Tell a node to write its inner state to its log."),
    later("PROMPT", false, "PROMPT [text]", "Change the prompt."),
    later("TLS", false, "TLS INFO", "Certificates of the links."),
];

/// Commands whose first word alone does not tell them.
fn two_words(first: &str, second: Option<&str>) -> Option<&'static str> {
    match (first, second) {
        ("START", Some(second)) if !second.is_empty() && "BACKUP".starts_with(second) => Some("STARTBACKUP"),
        ("EXIT", Some("SINGLE")) => Some("EXITSINGLE"),
        _ => None,
    }
}

fn syntax<T>(detail: impl Into<String>) -> Result<T, MgmError> {
    Err(MgmError::new(ErrorCode::MGM_SYNTAX, detail))
}

impl Command {
    /// Reads one command.
    pub fn parse(line: &str) -> Result<Command, MgmError> {
        let line = line.trim().trim_end_matches(';').trim_end();
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(first) = words.first() else { return Ok(Command::Empty) };
        if line.len() > 4096 {
            return syntax("the command is too long");
        }
        let (target, rest) = match target(first) {
            Some(target) => (Some(target?), words.get(1..).unwrap_or_default()),
            None => (None, words.as_slice()),
        };
        let Some(name) = rest.first() else {
            return syntax(format!("{first}: a command is missing; for example {first} STATUS"));
        };
        let arguments = rest.get(1..).unwrap_or_default();
        let word = find(name, arguments.first().copied())?;
        if !word.is_available {
            let detail = format!("{} is not available yet", word.usage);
            return Err(MgmError::new(ErrorCode::MGM_NOT_AVAILABLE, detail));
        }
        if word.takes_node && target.is_none() {
            return syntax(format!("{} needs a node id or ALL before it: {}", word.name, word.usage));
        }
        if !word.takes_node && target.is_some() {
            return syntax(format!("{} takes no node id: {}", word.name, word.usage));
        }
        command(word, target.unwrap_or(Target::All), arguments)
    }
}

/// `ALL` or a number; `None` if the word is neither.
fn target(word: &str) -> Option<Result<Target, MgmError>> {
    if word.eq_ignore_ascii_case("ALL") {
        return Some(Ok(Target::All));
    }
    if !word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+') {
        return None;
    }
    let id = word.parse::<u8>().ok().filter(|id| *id > 0);
    Some(match id {
        Some(id) => Ok(Target::Node(NodeId(id))),
        None => syntax(format!("{word} is no node id; node ids are 1 to 255")),
    })
}

fn find(name: &str, second: Option<&str>) -> Result<&'static Word, MgmError> {
    let upper = name.to_ascii_uppercase();
    let second = second.map(str::to_ascii_uppercase);
    let wanted = two_words(&upper, second.as_deref()).unwrap_or(&upper);
    if let Some(word) = WORDS.iter().find(|w| w.name == wanted) {
        return Ok(word);
    }
    let typed = WORDS.iter().filter(|w| is_typed(w));
    let matching: Vec<&Word> = typed.filter(|w| w.name.starts_with(wanted)).collect();
    match matching.as_slice() {
        [only] => Ok(only),
        [] => {
            let hint = nearest(wanted)
                .map_or_else(|| "HELP lists the commands".to_owned(), |n| format!("did you mean {n}?"));
            let shown: String = name.chars().take(40).flat_map(char::escape_default).collect();
            syntax(format!("unknown command {shown}; {hint}"))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|w| w.name).collect();
            syntax(format!("{name} may be {}; write more of it", names.join(" or ")))
        }
    }
}

/// Is the name really typed as one word?
fn is_typed(word: &Word) -> bool {
    !matches!(word.name, "EXITSINGLE" | "STARTBACKUP")
}

/// The command nearest to what was typed, if any is near.
fn nearest(wanted: &str) -> Option<&'static str> {
    config::params::nearest_name(wanted, WORDS.iter().filter(|w| is_typed(w)).map(|w| w.name))
}

fn command(word: &Word, target: Target, arguments: &[&str]) -> Result<Command, MgmError> {
    let none = |command: Command| match arguments.first() {
        None => Ok(command),
        Some(extra) => syntax(format!("unexpected {extra}; the form is {}", word.usage)),
    };
    match word.name {
        "SHOW" => none(Command::Show),
        "STATUS" => none(Command::Status(target)),
        "SHUTDOWN" => none(Command::Shutdown),
        "QUIT" | "EXIT" => none(Command::Quit),
        "STOP" => stop(word, target, arguments),
        "REPORT" => report(word, target, arguments),
        "CLUSTERLOG" => cluster_log(word, arguments),
        "CONNECT" => match arguments {
            [] => Ok(Command::Connect(None)),
            [to] => Ok(Command::Connect(Some((*to).to_owned()))),
            [_, extra, ..] => syntax(format!("unexpected {extra}; the form is {}", word.usage)),
        },
        // HELP, and nothing else is available.
        _ => Ok(Command::Help(arguments.first().map(|w| (*w).to_owned()))),
    }
}

fn stop(word: &Word, target: Target, arguments: &[&str]) -> Result<Command, MgmError> {
    let (mut is_abort, mut is_force) = (false, false);
    for argument in arguments {
        match argument.to_ascii_lowercase().as_str() {
            "-a" => is_abort = true,
            "-f" => is_force = true,
            "-fa" | "-af" => (is_abort, is_force) = (true, true),
            other => return syntax(format!("unexpected {other}; the form is {}", word.usage)),
        }
    }
    Ok(Command::Stop { target, is_abort, is_force })
}

fn report(word: &Word, target: Target, arguments: &[&str]) -> Result<Command, MgmError> {
    let [what] = arguments else { return syntax(format!("the form is {}", word.usage)) };
    let what = what.to_ascii_uppercase();
    let means = |name: &str| what.len() >= 2 && name.starts_with(&what);
    if means("MEMORYUSAGE") {
        return Ok(Command::ReportMemoryUsage(target));
    }
    if means("BACKUPSTATUS") || means("EVENTLOG") {
        return Err(MgmError::new(
            ErrorCode::MGM_NOT_AVAILABLE,
            format!("REPORT {what} is not available yet"),
        ));
    }
    syntax(format!("unknown report {what}; the form is {}", word.usage))
}

fn cluster_log(word: &Word, arguments: &[&str]) -> Result<Command, MgmError> {
    let first = arguments.first().map(|w| w.to_ascii_uppercase()).unwrap_or_default();
    match first.as_str() {
        "INFO" if arguments.len() == 1 => Ok(Command::ClusterLogInfo),
        "ON" | "OFF" | "FILTER" | "TOGGLE" => Err(MgmError::new(
            ErrorCode::MGM_NOT_AVAILABLE,
            format!("CLUSTERLOG {first} is not available yet"),
        )),
        _ => syntax(format!("the form is {}", word.usage)),
    }
}

/// HELP: the list of commands, or one of them.
pub fn help(topic: Option<&str>) -> Result<String, MgmError> {
    if let Some(topic) = topic {
        let word = find(topic, None)?;
        let note = if word.is_available { "" } else { "\n  Not available yet." };
        return Ok(format!("{}\n  {}{note}", word.usage, word.help));
    }
    let mut text = "Commands (any case; names may be shortened):".to_owned();
    for word in WORDS.iter().filter(|w| w.is_available) {
        text.push_str(&format!("\n  {:<38} {}", word.usage, word.help));
    }
    text.push_str("\nNot available yet:");
    for word in WORDS.iter().filter(|w| !w.is_available) {
        text.push_str(&format!("\n  {:<38} {}", word.usage, word.help));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Command {
        Command::parse(line).unwrap()
    }

    #[test]
    fn commands_in_any_case_and_shortened() {
        let one = Target::Node(NodeId(1));
        assert_eq!(parsed("  "), Command::Empty);
        assert_eq!(parsed("show;"), Command::Show);
        assert_eq!(parsed("sho"), Command::Show);
        assert_eq!(parsed("shut"), Command::Shutdown);
        assert_eq!(parsed("all STAT"), parsed("ALL STATUS"));
        assert_eq!(parsed("1 status"), Command::Status(one));
        let stop = |target, is_abort, is_force| Command::Stop { target, is_abort, is_force };
        assert_eq!(parsed("1 STOP"), stop(one, false, false));
        assert_eq!(parsed("1 stop -a -F"), stop(one, true, true));
        assert_eq!(parsed("ALL STOP -fa"), stop(Target::All, true, true));
        for memory in ["ALL REPORT MEMORYUSAGE", "all report mem", "all rep me", "ALL REPORT MemoryUsage"] {
            assert_eq!(parsed(memory), Command::ReportMemoryUsage(Target::All), "{memory}");
        }
        assert_eq!(parsed("clusterlog info"), Command::ClusterLogInfo);
        assert_eq!(parsed("connect a:1186"), Command::Connect(Some("a:1186".to_owned())));
        assert_eq!(parsed("help stop"), Command::Help(Some("stop".to_owned())));
        assert_eq!(parsed("QUIT"), Command::Quit);
        assert_eq!(parsed("exit"), Command::Quit);
    }

    #[test]
    fn mistakes_and_the_not_yet_available_are_told_apart() {
        for (line, code, part) in [
            ("shwo", ErrorCode::MGM_SYNTAX, "did you mean SHOW?"),
            ("sh", ErrorCode::MGM_SYNTAX, "SHOW or SHUTDOWN"),
            ("xyzzy", ErrorCode::MGM_SYNTAX, "HELP lists"),
            ("status", ErrorCode::MGM_SYNTAX, "needs a node id or ALL"),
            ("1 show", ErrorCode::MGM_SYNTAX, "takes no node id"),
            ("256 status", ErrorCode::MGM_SYNTAX, "1 to 255"),
            ("0 stop", ErrorCode::MGM_SYNTAX, "1 to 255"),
            ("-1 stop", ErrorCode::MGM_SYNTAX, "1 to 255"),
            ("1", ErrorCode::MGM_SYNTAX, "a command is missing"),
            ("show me", ErrorCode::MGM_SYNTAX, "unexpected me"),
            ("1 stop -x", ErrorCode::MGM_SYNTAX, "unexpected -x"),
            ("all report", ErrorCode::MGM_SYNTAX, "REPORT MEMORYUSAGE"),
            ("all report foo", ErrorCode::MGM_SYNTAX, "unknown report FOO"),
            ("clusterlog", ErrorCode::MGM_SYNTAX, "CLUSTERLOG INFO"),
            ("1 restart -i", ErrorCode::MGM_NOT_AVAILABLE, "RESTART"),
            ("start backup", ErrorCode::MGM_NOT_AVAILABLE, "START BACKUP [id] is not available yet"),
            ("1 start", ErrorCode::MGM_NOT_AVAILABLE, "{n|ALL} START is not"),
            ("create nodegroup 3,4", ErrorCode::MGM_NOT_AVAILABLE, "CREATE NODEGROUP"),
            ("enter single user mode 5", ErrorCode::MGM_NOT_AVAILABLE, "ENTER SINGLE"),
            ("exit single user mode", ErrorCode::MGM_NOT_AVAILABLE, "EXIT SINGLE"),
            ("rolling restart", ErrorCode::MGM_NOT_AVAILABLE, "ROLLING"),
            ("clusterlog off", ErrorCode::MGM_NOT_AVAILABLE, "CLUSTERLOG OFF"),
            ("all report backup", ErrorCode::MGM_NOT_AVAILABLE, "REPORT BACKUP"),
        ] {
            let error = Command::parse(line).unwrap_err();
            assert_eq!(error.code, code, "{line}: {error}");
            assert!(error.detail.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn help_knows_every_command() {
        let all = help(None).unwrap();
        for word in WORDS {
            assert!(all.contains(word.usage), "{}", word.usage);
        }
        assert!(help(Some("restart")).unwrap().contains("Not available yet"));
        assert!(help(Some("nope")).is_err());
    }
}
