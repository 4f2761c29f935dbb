//! Tidy: the repository's own rules, checked by reading it.
//!
//! * Every Rust file opens with an essay (`//!`), stays under 1,000 lines and 110 columns, has no trailing
//!   blanks.
//! * No leftovers: debug prints, notes to self, stubs, ignored tests.
//! * The kernel touches no clock, thread, file, socket or randomness.
//! * Crates know whom they may know: the arrows between folders point one way.
//! * README's code map names every crate.

use std::fs;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 1_000;
const COLUMNS_MAX: usize = 110;

/// Folders that are not ours to read.
const SKIPPED: [&str; 3] = ["target", ".git", "node_modules"];

/// Crate folder, and the crates of ours it may depend on.
const ARROWS: [(&str, &[&str]); 11] = [
    ("signals", &[]),
    ("config", &["signals"]),
    ("transporter", &["signals", "config"]),
    ("datanode/kernel", &["signals", "config"]),
    ("ndbapi", &["signals", "config", "transporter", "kernel"]),
    ("datanode", &["signals", "config", "transporter", "kernel"]),
    ("mgmd", &["signals", "config", "transporter"]),
    ("sqlnode", &["signals", "config", "transporter", "ndbapi"]),
    ("nucdb", &["signals", "config", "transporter", "datanode", "mgmd", "ndbapi", "sqlnode"]),
    ("tests", &["signals", "config", "transporter", "datanode", "mgmd", "ndbapi", "sqlnode", "nucdb"]),
    (
        "autotest",
        &["signals", "config", "transporter", "datanode", "mgmd", "ndbapi", "sqlnode", "nucdb", "kernel"],
    ),
];

/// What the kernel may not name in code.
const KERNEL_BANNED: [&str; 7] = [
    "std::time::Instant",
    "std::time::SystemTime",
    "std::thread",
    "std::fs",
    "std::net",
    "tokio::",
    "rand::",
];

/// Checks the repository at `root`; the error names every fault.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let mut faults = Vec::new();
    let mut files = Vec::new();
    collect(root, &mut files);
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let text = fs::read_to_string(&file).map_err(|e| format!("{name}: {e}"))?;
        check_file(&name, &text, &mut faults);
    }
    check_arrows(root, &mut faults);
    check_map(root, &mut faults);
    for fault in &faults {
        println!("tidy: {fault}");
    }
    if faults.is_empty() { Ok(()) } else { Err(format!("{} faults", faults.len())) }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() && !SKIPPED.contains(&name.as_str()) {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

fn check_file(name: &str, text: &str, faults: &mut Vec<String>) {
    let generated = text.contains("@generated");
    let essay = text.lines().find(|l| !l.trim().is_empty()).is_some_and(|l| l.starts_with("//!"));
    if !essay {
        faults.push(format!("{name}: does not open with an essay (//!)"));
    }
    let lines = text.lines().count();
    if lines > LINES_MAX && !generated {
        faults.push(format!("{name}: {lines} lines; cut it by concern ({LINES_MAX} at most)"));
    }
    // This file names what it looks for.
    let ours = name == "autotest/src/tidy.rs";
    let mut in_chart = false;
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        in_chart ^= line.contains("```");
        // Code is the formatter's; it leaves comments alone. Charts and tables may be as wide as they are.
        let comment = !in_chart
            && line.trim_start().starts_with("//")
            && !line.contains(" |")
            && !line.contains("| ")
            && !line.contains("|-");
        if comment && line.chars().count() > COLUMNS_MAX && !generated {
            faults.push(format!("{name}:{at}: longer than {COLUMNS_MAX} columns"));
        }
        if line.ends_with([' ', '\t']) {
            faults.push(format!("{name}:{at}: trailing blanks"));
        }
        if ours {
            continue;
        }
        for word in ["dbg!(", "FIXME", "todo!(", "unimplemented!(", "#[ignore"] {
            if line.contains(word) {
                faults.push(format!("{name}:{at}: {word} is a leftover"));
            }
        }
        let code = line.split("//").next().unwrap_or("");
        if name.starts_with("datanode/kernel/src/") {
            for word in KERNEL_BANNED.iter().filter(|w| code.contains(**w)) {
                faults.push(format!("{name}:{at}: {word} has no place in the kernel"));
            }
        }
    }
}

fn check_arrows(root: &Path, faults: &mut Vec<String>) {
    let ours: Vec<&str> = ARROWS.iter().map(|(f, _)| f.rsplit('/').next().unwrap_or(f)).collect();
    for (folder, allowed) in ARROWS {
        let Ok(text) = fs::read_to_string(root.join(folder).join("Cargo.toml")) else {
            faults.push(format!("{folder}/Cargo.toml cannot be read"));
            continue;
        };
        let mut section = "";
        for line in text.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let name = line.split(['.', ' ', '=']).next().unwrap_or("");
            // Tests may look across.
            let may = allowed.contains(&name)
                && (name != "kernel" || section != "[dependencies]" || folder == "datanode");
            if section == "[dependencies]" && ours.contains(&name) && !may {
                faults.push(format!("{folder} depends on {name}: that arrow points the wrong way"));
            }
        }
    }
}

fn check_map(root: &Path, faults: &mut Vec<String>) {
    let readme = fs::read_to_string(root.join("README.md")).unwrap_or_default();
    for (folder, _) in ARROWS {
        if !readme.contains(&format!("`{folder}/`")) {
            faults.push(format!("README.md: the code map does not name `{folder}/`"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        check_file(name, text, &mut faults);
        faults
    }

    #[test]
    fn each_rule_bites() {
        assert_eq!(faults("a.rs", "//! An essay.\nfn a() {}\n"), Vec::<String>::new());
        assert!(faults("a.rs", "fn a() {}\n")[0].contains("essay"));
        assert!(faults("a.rs", "//! E.\nlet x = 1; \n")[0].contains("blanks"));
        assert!(faults("a.rs", &format!("//! E.\n// {}\n", "x".repeat(111)))[0].contains("columns"));
        assert!(faults("a.rs", &format!("//! E.\n{}", "\n".repeat(1_000)))[0].contains("lines"));
        assert!(faults("a.rs", &format!("//! E.\n{}!(x)\n", "dbg"))[0].contains("leftover"));
        let clock = "//! E.\nlet now = std::time::Instant::now();\n";
        assert!(faults("datanode/kernel/src/a.rs", clock)[0].contains("no place"));
        assert!(faults("datanode/src/a.rs", clock).is_empty());
    }

    #[test]
    fn a_wrong_arrow_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        for (name, _) in ARROWS {
            fs::create_dir_all(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("Cargo.toml"), "[dependencies]\n").unwrap();
        }
        let mut found = Vec::new();
        check_arrows(folder.path(), &mut found);
        assert!(found.is_empty(), "{found:?}");
        fs::write(folder.path().join("signals/Cargo.toml"), "[dependencies]\nconfig.workspace = true\n")
            .unwrap();
        check_arrows(folder.path(), &mut found);
        assert!(found[0].contains("signals depends on config"), "{found:?}");
    }
}
