//! Where the subjects are, and which of them could not be had.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Everything that `ci/bench.sh` prepared.
#[derive(Clone, Debug)]
pub struct Tools {
    /// Where results go, and below it what was built: `target/bench`.
    pub dir: PathBuf,
    /// The sources of peers in scripting languages.
    pub peers: PathBuf,
    /// The Python of the bench's own virtual environment.
    pub python: PathBuf,
    /// Name and reason of what could not be built.
    pub unbuilt: BTreeMap<String, String>,
    /// The program with the subjects of the suite `queue`, which may stand alone.
    pub queue: PathBuf,
}

impl Tools {
    /// Looks into `dir`, which `ci/bench.sh` fills.
    pub fn find(dir: &Path) -> Tools {
        let listed = std::fs::read_to_string(dir.join("missing.tsv")).unwrap_or_default();
        let unbuilt = listed
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .map(|(name, reason)| (name.to_owned(), reason.to_owned()))
            .collect();
        Tools {
            dir: dir.to_owned(),
            peers: Path::new(env!("CARGO_MANIFEST_DIR")).join("peers"),
            python: dir.join("venv/bin/python"),
            unbuilt,
            queue: dir.join("bin/bench-queue"),
        }
    }

    /// A program that the bench built.
    pub fn built(&self, name: &str) -> PathBuf {
        self.dir.join("bin").join(name)
    }

    /// A script, with the interpreter that runs it.
    pub fn script(&self, interpreter: &str, file: &str) -> Vec<PathBuf> {
        let interpreter = match interpreter {
            "python" => self.python.clone(),
            other => PathBuf::from(other),
        };
        vec![interpreter, self.peers.join(file)]
    }

    /// Why `subject` (or `subject/variant`) cannot be run, if it cannot.
    pub fn missing(&self, subject: &str, argv: &[PathBuf]) -> Option<String> {
        let name = subject.split('/').next().unwrap_or(subject);
        if let Some(reason) = self.unbuilt.get(name) {
            return Some(reason.clone());
        }
        let absent = argv
            .iter()
            .find(|path| path.is_absolute() && !path.exists())?;
        Some(format!("{} is not there", absent.display()))
    }
}
