//! The crates of the workspace and whom they may know.
//!
//! The list of crates is the workspace's own; the arrows between them are the table here. A crate without a
//! row, a row without a crate, and an arrow that is not in its row are faults. Tests may look further than
//! what is shipped, but not anywhere: they have a table of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use toml::{Table, Value};

/// Crate folder, and the crates of ours it may depend on.
const ARROWS: [(&str, &[&str]); 11] = [
    ("signals", &[]),
    ("config", &["signals"]),
    ("transporter", &["signals", "config"]),
    ("datanode/kernel", &["signals"]),
    ("ndbapi", &["signals", "config", "transporter"]),
    ("datanode", &["signals", "config", "transporter", "kernel"]),
    ("mgmd", &["signals", "config", "transporter"]),
    ("sqlnode", &["signals", "config", "ndbapi"]),
    ("nucdb", &["signals", "config", "datanode", "mgmd", "ndbapi", "sqlnode"]),
    ("tests", &["signals", "ndbapi"]),
    (
        "autotest",
        &["signals", "config", "transporter", "datanode", "mgmd", "ndbapi", "sqlnode", "nucdb", "kernel"],
    ),
];

/// What their tests may depend on beside that.
const TEST_ARROWS: [(&str, &[&str]); 2] = [("ndbapi", &["kernel"]), ("datanode", &["ndbapi"])];

/// What the kernel's code may depend on outside the workspace: containers and hashes, nothing that acts.
const KERNEL_OUTSIDE: [&str; 2] = ["hashbrown", "xxhash-rust"];

/// A table row's list.
fn row<'a>(table: &[(&str, &'a [&'a str])], folder: &str) -> Option<&'a [&'a str]> {
    table.iter().find(|(name, _)| *name == folder).map(|(_, list)| *list)
}

fn read(path: &Path) -> Result<Table, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    text.parse().map_err(|e| format!("{}: {e}", path.display()))
}

/// The folders of the workspace's crates.
pub(super) fn folders(root: &Path) -> Result<Vec<String>, String> {
    let manifest = read(&root.join("Cargo.toml"))?;
    let members = manifest.get("workspace").and_then(|w| w.get("members")).and_then(Value::as_array);
    let members = members.ok_or("Cargo.toml: no list of members")?;
    Ok(members.iter().filter_map(Value::as_str).map(str::to_string).collect())
}

/// The dependencies of one kind, those of single platforms among them, by their package names.
fn dependencies(manifest: &Table, kind: &str) -> BTreeSet<String> {
    let platforms = manifest.get("target").and_then(Value::as_table);
    let of_platforms = platforms.into_iter().flat_map(|t| t.values().filter_map(|p| p.get(kind)));
    let tables = manifest.get(kind).into_iter().chain(of_platforms).filter_map(Value::as_table);
    let name = |(name, value): (&String, &Value)| {
        let renamed = value.get("package").and_then(Value::as_str);
        renamed.unwrap_or(name).to_string()
    };
    tables.flatten().map(name).collect()
}

/// Checks the arrows between the crates in `folders`.
pub(super) fn check_arrows(root: &Path, folders: &[String], faults: &mut Vec<String>) {
    let ours: BTreeMap<&str, &str> =
        folders.iter().map(|f| (f.rsplit('/').next().unwrap_or(f), f.as_str())).collect();
    for (folder, _) in ARROWS.iter().filter(|(f, _)| !folders.iter().any(|member| member == f)) {
        faults.push(format!("autotest/src/tidy/crates.rs: {folder} is no member of the workspace"));
    }
    for folder in folders {
        let Some(allowed) = row(&ARROWS, folder) else {
            faults.push(format!(
                "{folder}: a crate without a row of allowed arrows (autotest/src/tidy/crates.rs)"
            ));
            continue;
        };
        let manifest = match read(&root.join(folder).join("Cargo.toml")) {
            Ok(manifest) => manifest,
            Err(why) => {
                faults.push(why);
                continue;
            }
        };
        let of_tests = row(&TEST_ARROWS, folder).unwrap_or_default();
        let kinds = [("dependencies", &[][..]), ("dev-dependencies", of_tests), ("build-dependencies", &[])];
        for (kind, more) in kinds {
            for name in dependencies(&manifest, kind) {
                let may = allowed.contains(&name.as_str()) || more.contains(&name.as_str());
                if ours.contains_key(name.as_str()) && !may {
                    faults.push(format!(
                        "{folder} depends on {name} ({kind}): that arrow points the wrong way"
                    ));
                }
                let outside = !ours.contains_key(name.as_str()) && kind != "dev-dependencies";
                if folder == "datanode/kernel" && outside && !KERNEL_OUTSIDE.contains(&name.as_str()) {
                    faults.push(format!("{folder} depends on {name}: it stays a state machine without help"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_with(folder: &str, manifest: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let folders: Vec<String> = ARROWS.iter().map(|(f, _)| f.to_string()).collect();
        for name in &folders {
            fs::create_dir_all(root.path().join(name)).unwrap();
            let text = if name == folder { manifest } else { "[dependencies]\n" };
            fs::write(root.path().join(name).join("Cargo.toml"), text).unwrap();
        }
        let mut found = Vec::new();
        check_arrows(root.path(), &folders, &mut found);
        found
    }

    #[test]
    fn a_wrong_arrow_is_seen_however_it_is_written() {
        assert_eq!(faults_with("config", "[dependencies]\nsignals.workspace = true\n"), Vec::<String>::new());
        for wrong in [
            "[dependencies]\nconfig.workspace = true\n",
            "[dependencies.config]\npath = \"../config\"\n",
            "[build-dependencies]\nconfig = { workspace = true }\n",
            "[dev-dependencies]\nconfig.workspace = true\n",
            "[target.'cfg(unix)'.dependencies]\nother = { package = \"config\", path = \"../config\" }\n",
        ] {
            let found = faults_with("signals", wrong);
            assert!(found.len() == 1 && found[0].contains("signals depends on config"), "{wrong}: {found:?}");
        }
    }

    #[test]
    fn tests_may_look_further_but_not_what_is_shipped() {
        assert!(faults_with("ndbapi", "[dev-dependencies]\nkernel.workspace = true\n").is_empty());
        let shipped = faults_with("ndbapi", "[dependencies]\nkernel.workspace = true\n");
        assert!(shipped[0].contains("wrong way"), "{shipped:?}");
        let clock = faults_with("datanode/kernel", "[dependencies]\ntokio.workspace = true\n");
        assert!(clock[0].contains("state machine"), "{clock:?}");
    }

    #[test]
    fn the_list_of_crates_is_the_workspaces() {
        let root = tempfile::tempdir().unwrap();
        let manifest = "[workspace]\nmembers = [\n  \"signals\", \"new\",\n]\n";
        fs::write(root.path().join("Cargo.toml"), manifest).unwrap();
        let folders = folders(root.path()).unwrap();
        assert_eq!(folders, ["signals", "new"]);
        let mut found = Vec::new();
        check_arrows(root.path(), &folders, &mut found);
        assert!(found.iter().any(|f| f.contains("new: a crate without a row")), "{found:?}");
        assert!(found.iter().any(|f| f.contains("config is no member")), "{found:?}");
    }
}
