//! `nucdb mgm`: the management client, interactive, fed by a pipe, or for one line.
//!
//! The command language and its answers are the `mgmd` crate's; here is only the terminal: a prompt with
//! history and completion when there is one, plain lines when input is a pipe. A script's exit code is that
//! of its last command that failed. With `--json` each answer is one line; `-e` with several commands makes
//! one array of them, so that the whole output is JSON.

use crate::say;
use clap::Args;
use mgmd::command::{Format, Reply, Session, split_script};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Command line of `nucdb mgm`.
#[derive(Args)]
pub struct Arguments {
    /// Management servers: host:port[,host:port...]
    #[arg(short = 'c', long, default_value = "127.0.0.1:1186")]
    connect_string: String,
    /// Run these commands, separated by semicolons, and exit
    #[arg(short = 'e', long)]
    execute: Option<String>,
    /// Answer in JSON: one line for each command, or one array with -e and several commands
    #[arg(long)]
    json: bool,
}

/// Commands without a node id in front.
const COMMANDS: [&str; 9] = [
    "SHOW",
    "ALL STATUS",
    "ALL STOP",
    "ALL REPORT MEMORYUSAGE",
    "SHUTDOWN",
    "CLUSTERLOG INFO",
    "CONNECT",
    "HELP",
    "QUIT",
];

/// Commands that follow a node id.
const NODE_COMMANDS: [&str; 3] = ["STATUS", "STOP", "REPORT MEMORYUSAGE"];

/// Lines kept in the history.
const HISTORY_LINES: usize = 1000;

/// Runs the client; the exit code is that of the last command that failed, or 0.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    let format = if arguments.json { Format::Json } else { Format::Text };
    let mut session = Session::new(&arguments.connect_string, format);
    match &arguments.execute {
        Some(script) => one_shot(&mut session, &split_script(script), arguments.json),
        None if std::io::stdin().is_terminal() => interactive(&mut session),
        None => piped(&mut session),
    }
}

/// Runs the commands of `-e`.
fn one_shot(session: &mut Session, commands: &[&str], json: bool) -> ExitCode {
    let mut failed = 0;
    let mut answers = Vec::new();
    for line in commands {
        let reply = session.execute(line);
        failed = later_failure(failed, &reply);
        if json && commands.len() > 1 {
            answers.extend((!reply.text.is_empty()).then(|| reply.text.trim_end().to_string()));
        } else {
            print(&reply);
        }
        if reply.is_quit {
            break;
        }
    }
    if json && commands.len() > 1 {
        say!("[{}]", answers.join(",\n"));
    }
    ExitCode::from(failed)
}

/// Runs the commands of a pipe or file, to its end or QUIT.
fn piped(session: &mut Session) -> ExitCode {
    let mut failed = 0;
    for line in std::io::stdin().lock().lines() {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                eprintln!("nucdb: the input cannot be read: {error}");
                return ExitCode::FAILURE;
            }
        };
        for command in split_script(&line) {
            let reply = session.execute(command);
            print(&reply);
            failed = later_failure(failed, &reply);
            if reply.is_quit {
                return ExitCode::from(failed);
            }
        }
    }
    ExitCode::from(failed)
}

fn later_failure(failed: u8, reply: &Reply) -> u8 {
    if reply.exit_code == 0 { failed } else { reply.exit_code }
}

fn print(reply: &Reply) {
    if !reply.text.is_empty() {
        say!("{}", reply.text.trim_end());
    }
}

fn interactive(session: &mut Session) -> ExitCode {
    let settings = rustyline::Config::builder().max_history_size(HISTORY_LINES);
    let settings = match settings {
        Ok(builder) => builder.auto_add_history(true).build(),
        Err(_) => rustyline::Config::default(),
    };
    let mut editor: Editor<Words, DefaultHistory> = match Editor::with_config(settings) {
        Ok(editor) => editor,
        Err(error) => {
            eprintln!("nucdb: no terminal: {error}");
            return ExitCode::FAILURE;
        }
    };
    editor.set_helper(Some(Words));
    // Neither reading nor writing the history is worth a word when it fails.
    let history = history_file(|name| std::env::var_os(name));
    if let Some(file) = &history {
        let _ = editor.load_history(file);
    }
    match session.connect() {
        Ok(greeting) => say!("{greeting}"),
        Err(error) => eprintln!("{error}"),
    }
    let exit = converse(session, &mut editor);
    if let Some(file) = &history {
        if let Some(folder) = file.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        let _ = editor.append_history(file);
    }
    exit
}

/// Prompts until the operator leaves.
fn converse(session: &mut Session, editor: &mut Editor<Words, DefaultHistory>) -> ExitCode {
    loop {
        match editor.readline("nucdb> ") {
            Ok(line) => {
                let reply = session.execute(&line);
                print(&reply);
                if reply.is_quit {
                    return ExitCode::SUCCESS;
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => return ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("nucdb: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
}

/// Where the history is kept: in XDG's folder for state if the environment names one, else in the home.
fn history_file(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name| variable(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    if let Some(state) = folder("XDG_STATE_HOME") {
        return Some(state.join("nucdb/mgm_history"));
    }
    Some(folder("HOME")?.join(Path::new(".nucdb_mgm_history")))
}

/// What a line may become.
fn completions(line: &str) -> Vec<String> {
    let typed = line.to_ascii_uppercase();
    let id: String = typed.chars().take_while(char::is_ascii_digit).collect();
    if id.is_empty() {
        return COMMANDS.iter().filter(|c| c.starts_with(&typed)).map(|c| (*c).to_string()).collect();
    }
    let all = NODE_COMMANDS.iter().map(|command| format!("{id} {command}"));
    all.filter(|command| command.starts_with(&typed)).collect()
}

/// Completes commands.
struct Words;

impl Helper for Words {}
impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}
impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((0, completions(line.get(..at).unwrap_or(line))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_completed_for_all_and_for_one_node() {
        assert_eq!(completions("sh"), ["SHOW", "SHUTDOWN"]);
        assert_eq!(completions("12"), ["12 STATUS", "12 STOP", "12 REPORT MEMORYUSAGE"]);
        assert_eq!(completions("12 sto"), ["12 STOP"]);
        assert_eq!(completions("").len(), COMMANDS.len());
        assert!(completions("x").is_empty() && completions("1x").is_empty());
    }

    #[test]
    fn the_history_lies_where_state_does() {
        let none = |_: &str| None;
        assert_eq!(history_file(none), None);
        let home = |name: &str| (name == "HOME").then(|| OsString::from("/home/a"));
        assert_eq!(history_file(home), Some(PathBuf::from("/home/a/.nucdb_mgm_history")));
        let state = |name: &str| Some(OsString::from(if name == "HOME" { "/home/a" } else { "/state" }));
        assert_eq!(history_file(state), Some(PathBuf::from("/state/nucdb/mgm_history")));
        let odd = |_: &str| Some(OsString::from("relative"));
        assert_eq!(history_file(odd), None);
    }
}
