//! The test clients: real programs that the cluster tests and benchmarks drive a cluster with.
//!
//! Missing ones are installed where that is possible (Debian, root); otherwise they are named.

use std::process::{Command, Stdio};

/// How to see that a client is there, and the Debian package that brings it.
const CLIENTS: [(&[&str], &str); 5] = [
    (&["mariadb", "--version"], "mariadb-client"),
    (&["sysbench", "--version"], "sysbench"),
    (&["/usr/bin/python3", "-c", "import pymysql"], "python3-pymysql"),
    (&["redis-benchmark", "--version"], "redis-tools"),
    (&["redis-server", "--version"], "redis-server"),
];

fn runs(command: &[&str]) -> bool {
    let Some((program, arguments)) = command.split_first() else { return false };
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn missing() -> Vec<&'static str> {
    CLIENTS.iter().filter(|(command, _)| !runs(command)).map(|(_, package)| *package).collect()
}

/// Makes sure that every client is there.
pub(crate) fn ensure(install: bool) -> Result<(), String> {
    let packages = missing();
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    let root = runs(&["sh", "-c", "test \"$(id -u)\" = 0"]);
    if !install || !root || !runs(&["apt-get", "--version"]) {
        return Err(format!("test clients are missing; install these packages: {list}"));
    }
    println!("installing {list}");
    let apt = |arguments: &[&str]| {
        Command::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null())
            .status()
    };
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
    arguments.extend(&packages);
    let updated = apt(&["update", "-qq"]).is_ok_and(|s| s.success());
    let installed = apt(&arguments).is_ok_and(|s| s.success());
    let left = missing();
    if left.is_empty() {
        return Ok(());
    }
    Err(format!("could not install {} (update {updated}, install {installed})", left.join(" ")))
}
