//! Tidy: the repository's own rules, checked by reading it.
//!
//! * Every Rust file opens with an essay (`//!`), stays under 1,000 lines and 110 columns, has no trailing
//!   blanks. Functions stay under 70 lines of code.
//! * No leftovers: debug prints, notes to self, stubs, ignored tests.
//! * The kernel touches no clock, thread, file, socket or randomness.
//! * Crates know whom they may know: the arrows between folders point one way (`crates`).
//! * README's code map names every crate.

mod crates;
mod source;

use proc_macro2::TokenStream;
use std::fs;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 1_000;
const COLUMNS_MAX: usize = 110;

/// Folders that are not ours to read.
const SKIPPED: [&str; 3] = ["target", ".git", "node_modules"];

/// What the kernel may not name in code, nor anything in it.
const KERNEL_BANNED: [&str; 11] = [
    "std::time::Instant",
    "std::time::SystemTime",
    "std::thread",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::env",
    "std::io",
    "tokio",
    "rand",
];

/// Lines of code a function may have.
const FUNCTION_LINES_MAX: usize = 70;

/// Functions of tests may be longer: a story reads from top to bottom.
const TEST_LINES_MAX: usize = 120;

/// Functions that are longer, file and name, and may not grow. Entries only ever leave this list.
const LONG_FUNCTIONS: [(&str, &str, usize); 0] = [];

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
    let folders = crates::folders(root)?;
    crates::check_arrows(root, &folders, &mut faults);
    check_map(root, &folders, &mut faults);
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
    // Tidy names what it looks for.
    let ours = name.starts_with("autotest/src/tidy/");
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
    }
    match text.parse::<TokenStream>() {
        Ok(tokens) => check_code(name, text, &tokens, faults),
        Err(error) => faults.push(format!("{name}: no Rust: {error}")),
    }
}

/// The rules about code rather than text.
fn check_code(name: &str, text: &str, tokens: &TokenStream, faults: &mut Vec<String>) {
    let is_test = name.contains("/tests/") || name.ends_with("/tests.rs") || name.starts_with("tests/");
    for function in source::functions(text, tokens.clone(), is_test) {
        let usual = if function.is_test { TEST_LINES_MAX } else { FUNCTION_LINES_MAX };
        let known = LONG_FUNCTIONS.iter().find(|(file, f, _)| *file == name && *f == function.name);
        let most = known.map_or(usual, |(_, _, lines)| *lines);
        if known.is_some() && function.code_lines < most {
            let now = function.code_lines;
            faults.push(format!("{name}: {} has {now} lines now; say so in LONG_FUNCTIONS", function.name));
        }
        if function.code_lines > most {
            let source::Function { name: called, line, code_lines, .. } = function;
            faults.push(format!("{name}:{line}: {called} has {code_lines} lines of code; {most} at most"));
        }
    }
    if name.starts_with("datanode/kernel/src/") {
        for source::NamedPath { path, line } in source::paths(tokens.clone()) {
            let within = |banned: &str| path == banned || path.starts_with(&format!("{banned}::"));
            if KERNEL_BANNED.iter().any(|banned| within(banned)) {
                faults.push(format!("{name}:{line}: {path} has no place in the kernel"));
            }
        }
    }
}

fn check_map(root: &Path, folders: &[String], faults: &mut Vec<String>) {
    let readme = fs::read_to_string(root.join("README.md")).unwrap_or_default();
    for folder in folders {
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
        let hidden = "//! E.\nuse std::{collections::BTreeMap, fs};\n";
        assert!(faults("datanode/kernel/src/a.rs", hidden)[0].contains("a.rs:2: std::fs has no place"));
        let duration = "//! E.\nuse std::time::Duration;\n// std::fs\n";
        assert!(faults("datanode/kernel/src/a.rs", duration).is_empty());
        let long = |lines| format!("//! E.\nfn a() {{\n{}}}\n", "    b();\n".repeat(lines));
        assert!(faults("a.rs", &long(FUNCTION_LINES_MAX)).is_empty());
        assert!(faults("a.rs", &long(FUNCTION_LINES_MAX + 1))[0].contains("a has 71 lines"));
        assert!(faults("tests/a.rs", &long(FUNCTION_LINES_MAX + 1)).is_empty());
        assert!(faults("a.rs", "//! E.\nfn a() {\n")[0].contains("no Rust"));
    }
}
