//! `nucdb-datanode`: the data node as a process of its own.

fn main() -> std::process::ExitCode {
    datanode::daemon::main()
}
