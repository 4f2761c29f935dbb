//! `nucdb mgm`: the management client, interactive or for one line.
//!
//! The command language and its answers are the `mgmd` crate's; here is only the terminal: a prompt with
//! history and completion when there is one, plain lines when input is a pipe.

use clap::Args;
use mgmd::command::{Format, Session, split_script};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};
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
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

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

/// Runs the client; the exit code is that of the last command that failed, or 0.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    let format = if arguments.json { Format::Json } else { Format::Text };
    let mut session = Session::new(&arguments.connect_string, format);
    match &arguments.execute {
        Some(script) => {
            let mut worst = 0;
            for line in split_script(script) {
                let (code, quit) = execute(&mut session, line);
                worst = worst.max(code);
                if quit {
                    break;
                }
            }
            ExitCode::from(worst)
        }
        None => interactive(&mut session),
    }
}

fn execute(session: &mut Session, line: &str) -> (u8, bool) {
    let reply = session.execute(line);
    if !reply.text.is_empty() {
        println!("{}", reply.text.trim_end());
    }
    (reply.exit_code, reply.is_quit)
}

fn interactive(session: &mut Session) -> ExitCode {
    let mut editor: Editor<Words, DefaultHistory> = match Editor::new() {
        Ok(editor) => editor,
        Err(error) => {
            eprintln!("nucdb: no terminal: {error}");
            return ExitCode::FAILURE;
        }
    };
    editor.set_helper(Some(Words));
    match session.connect() {
        Ok(greeting) => println!("{greeting}"),
        Err(error) => eprintln!("{error}"),
    }
    let mut worst = 0;
    loop {
        match editor.readline("nucdb> ") {
            Ok(line) => {
                // A history that cannot grow is no reason to stop.
                let _ = editor.add_history_entry(line.as_str());
                let (code, quit) = execute(session, &line);
                worst = worst.max(code);
                if quit {
                    return ExitCode::SUCCESS;
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => return ExitCode::from(worst),
            Err(error) => {
                eprintln!("nucdb: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
}

/// Completes the names of commands.
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
        let typed = line.get(..at).unwrap_or(line).to_ascii_uppercase();
        Ok((0, COMMANDS.iter().filter(|c| c.starts_with(&typed)).map(|c| (*c).to_string()).collect()))
    }
}
