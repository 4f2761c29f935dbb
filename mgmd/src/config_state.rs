//! Which configuration is active, what the file says, and when the one becomes the other.
//!
//! The **active** configuration is the one nodes have been given; it is on disk (`store`) with its
//! generation. The **file** is what the operator edits. They are compared at start, when the cluster is
//! shown, and before the first data node is let in. If they differ, the file's takes over, with the next
//! generation, only while no data node is up: a data node must never run beside another with a different
//! configuration. Until then SHOW and the log say what differs. A file with mistakes changes nothing and is
//! reported as such.

use crate::store;
use config::ClusterConfig;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most differences listed.
const DIFFERENCES_MAX: usize = 50;

/// What the file says against what is active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileState {
    /// The same.
    Same,
    /// Something else, with the differences in words.
    Differs { config: Box<ClusterConfig>, differences: Vec<String> },
    /// It cannot be read or has mistakes.
    Bad(String),
}

/// The configuration and its file.
#[derive(Debug)]
pub(crate) struct ConfigState {
    active: Arc<ClusterConfig>,
    file: FileState,
    file_path: PathBuf,
    store_path: PathBuf,
}

/// Reads and checks the file; the error is the whole list of mistakes.
pub(crate) fn read_file(path: &Path) -> Result<config::Loaded, String> {
    let shown = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|e| format!("{shown}: cannot be read: {e}"))?;
    config::parse(&shown, &bytes).map_err(|errors| errors.to_string())
}

impl ConfigState {
    /// Joins the file (already read) and the stored configuration; a first file is accepted at once.
    pub(crate) fn new(
        mut from_file: ClusterConfig,
        stored: Option<ClusterConfig>,
        is_initial: bool,
        file_path: PathBuf,
        store_path: PathBuf,
    ) -> std::io::Result<ConfigState> {
        let active = match stored {
            Some(stored) if !is_initial => stored,
            other => {
                from_file.generation = other.map_or(0, |stored| stored.generation) + 1;
                store::write(&store_path, &from_file)?;
                from_file.clone()
            }
        };
        let file = compare(&active, from_file);
        Ok(ConfigState { active: Arc::new(active), file, file_path, store_path })
    }

    pub(crate) fn active(&self) -> &Arc<ClusterConfig> {
        &self.active
    }

    pub(crate) fn file(&self) -> &FileState {
        &self.file
    }

    /// Looks at the file again; true if what it says about the active configuration has changed.
    pub(crate) fn refresh(&mut self) -> bool {
        let now = match read_file(&self.file_path) {
            Ok(loaded) => compare(&self.active, loaded.config),
            Err(mistakes) => FileState::Bad(mistakes),
        };
        let is_changed = now != self.file;
        self.file = now;
        is_changed
    }

    /// Makes the file's configuration the active one. The caller knows that no data node is up. Returns it
    /// if there was something to take.
    pub(crate) fn adopt(&mut self) -> std::io::Result<Option<Arc<ClusterConfig>>> {
        let FileState::Differs { config, .. } = &self.file else { return Ok(None) };
        let mut config = (**config).clone();
        config.generation = self.active.generation + 1;
        store::write(&self.store_path, &config)?;
        self.active = Arc::new(config);
        self.file = FileState::Same;
        Ok(Some(Arc::clone(&self.active)))
    }

    /// The differences in words, for SHOW and the log.
    pub(crate) fn differences(&self) -> Vec<String> {
        match &self.file {
            FileState::Same => Vec::new(),
            FileState::Differs { differences, .. } => {
                let mut lines = vec![format!(
                    "{} differs from the active configuration (generation {}); it is taken when every data node is down",
                    self.file_path.display(),
                    self.active.generation
                )];
                lines.extend(differences.iter().cloned());
                lines
            }
            FileState::Bad(mistakes) => {
                let mut lines = vec![format!(
                    "{} cannot be used; the active configuration (generation {}) stays",
                    self.file_path.display(),
                    self.active.generation
                )];
                lines.extend(mistakes.lines().take(DIFFERENCES_MAX).map(str::to_owned));
                lines
            }
        }
    }
}

fn compare(active: &ClusterConfig, mut from_file: ClusterConfig) -> FileState {
    from_file.generation = active.generation;
    if from_file == *active {
        return FileState::Same;
    }
    let mut differences: Vec<String> =
        config::diff(active, &from_file).iter().map(ToString::to_string).collect();
    if differences.len() > DIFFERENCES_MAX {
        let rest = differences.len() - DIFFERENCES_MAX;
        differences.truncate(DIFFERENCES_MAX);
        differences.push(format!("... and {rest} more"));
    }
    FileState::Differs { config: Box::new(from_file), differences }
}
