//! DataDir: the folder a data node keeps its files in, checked before anything else, and its pid file.
//!
//! A folder that is absent is made. One that cannot be made, read or written, or is a file, stops the start
//! with a line that names path and setting. The pid file is locked while the node runs: a second node with
//! the same id and folder is refused, and a file that a killed process left behind is of no consequence.

use crate::setup::StartError;
use rustix::fs::{FlockOperation, flock};
use signals::NodeId;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// See the module. The pid file goes when this value does.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    pid_path: PathBuf,
    _pid_file: File,
}

impl DataDir {
    /// Makes or checks the folder, and takes the pid file of `node`.
    ///
    /// # Errors
    /// The folder cannot be used, or a node with this id runs there.
    pub fn open(data_dir: &str, node: NodeId) -> Result<Self, StartError> {
        let path = PathBuf::from(data_dir);
        let bad = |what: &str, error: std::io::Error| {
            StartError(format!(
                "{what} {} (DataDir of data node {node} in the cluster's configuration): {error}",
                path.display()
            ))
        };
        if path.exists() && !path.is_dir() {
            return Err(bad("the data directory is a file:", std::io::ErrorKind::NotADirectory.into()));
        }
        fs::create_dir_all(&path).map_err(|error| bad("cannot make the data directory", error))?;
        let pid_path = path.join(format!("ndb_{node}.pid"));
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&pid_path)
            .map_err(|error| bad("cannot write to the data directory", error))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut pid = String::new();
            let _ = file.read_to_string(&mut pid);
            return Err(StartError(format!(
                "data node {node} runs already, as process {} (its pid file is {})",
                pid.trim(),
                pid_path.display()
            )));
        }
        let text = format!("{}\n", std::process::id());
        file.set_len(0)
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(|error| bad("cannot write to the data directory", error))?;
        Ok(Self { path, pid_path, _pid_file: file })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.pid_path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_folder_is_made_and_a_second_node_refused() {
        let parent = std::env::temp_dir().join(format!("nucdb-datadir-{}", std::process::id()));
        let wanted = parent.join("a/b");
        let text = wanted.to_str().unwrap();
        let dir = DataDir::open(text, NodeId(3)).unwrap();
        let pid = fs::read_to_string(wanted.join("ndb_3.pid")).unwrap();
        assert_eq!(pid.trim(), std::process::id().to_string());
        let error = DataDir::open(text, NodeId(3)).unwrap_err().to_string();
        assert!(error.contains("runs already") && error.contains(pid.trim()), "{error}");
        drop(DataDir::open(text, NodeId(4)).unwrap());
        drop(dir);
        assert!(!wanted.join("ndb_3.pid").exists());
        // A file a killed process left behind does not hinder.
        fs::write(wanted.join("ndb_3.pid"), "1\n").unwrap();
        drop(DataDir::open(text, NodeId(3)).unwrap());
        fs::remove_dir_all(&parent).unwrap();
    }

    #[test]
    fn what_is_wrong_is_named() {
        let file = std::env::temp_dir().join(format!("nucdb-datadir-file-{}", std::process::id()));
        fs::write(&file, "x").unwrap();
        for path in [file.clone(), file.join("below"), PathBuf::from("/proc/nucdb")] {
            let error = DataDir::open(path.to_str().unwrap(), NodeId(3)).unwrap_err().to_string();
            assert!(error.contains("DataDir") && error.contains(path.to_str().unwrap()), "{error}");
        }
        fs::remove_file(&file).unwrap();
    }
}
