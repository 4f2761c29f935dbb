//! `nucdb-mgmd`: the management server as a process of its own.

fn main() -> std::process::ExitCode {
    mgmd::daemon::main_from(std::env::args_os())
}
