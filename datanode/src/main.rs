//! `nucdb-datanode`: the data node as a process of its own.

fn main() -> std::process::ExitCode {
    datanode::daemon::main_from(std::env::args_os())
}
