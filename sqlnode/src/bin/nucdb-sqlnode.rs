//! `nucdb-sqlnode`: the SQL node as a process of its own.

fn main() -> std::process::ExitCode {
    sqlnode::daemon::main_from(std::env::args_os())
}
