//! Dead letters as plain files, as the local S3 of `lastmile dev` keeps them: the key is the path.
//!
//! Blocking work happens where it hurts nobody. Writes go aside and are moved into place, so
//! whoever reads sees a blob whole or not at all.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use super::{Answer, Ask, Blob, PAGE, Page, Storage};

/// Where content is written before it is moved into place; no key begins like this.
const ASIDE: &str = ".lastmile-";

/// A folder of blobs.
pub(crate) struct Folder {
    files: Arc<Files>,
}

/// The same, where blocking is allowed.
struct Files {
    root: PathBuf,
    written: AtomicU64,
}

impl Folder {
    /// This folder.
    pub(crate) fn new(root: &Path) -> Self {
        Self { files: Arc::new(Files { root: root.to_path_buf(), written: AtomicU64::new(0) }) }
    }

    fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T> + Send + 'static,
    ) -> Answer<'static, T> {
        let files = Arc::clone(&self.files);
        Box::pin(async move { Ok(tokio::task::spawn_blocking(move || work(&files)).await??) })
    }
}

impl Storage for Folder {
    fn list<'a>(&'a self, ask: &'a Ask) -> Answer<'a, Page> {
        let ask = ask.clone();
        self.with(move |files| files.page(&ask))
    }

    fn get<'a>(&'a self, key: &'a str) -> Answer<'a, Option<Vec<u8>>> {
        let key = key.to_owned();
        self.with(move |files| match std::fs::read(files.path(&key)?) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        })
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> Answer<'a, ()> {
        let key = key.to_owned();
        self.with(move |files| {
            files.place(&key, &bytes, |aside, path| std::fs::rename(aside, path))
        })
    }

    fn put_new<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> Answer<'a, ()> {
        let key = key.to_owned();
        self.with(move |files| {
            let linked = files.place(&key, &bytes, |aside, path| {
                let linked = std::fs::hard_link(aside, path);
                std::fs::remove_file(aside).and(linked)
            });
            match linked {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            }
        })
    }

    fn delete<'a>(&'a self, keys: &'a [String]) -> Answer<'a, ()> {
        let keys = keys.to_vec();
        self.with(move |files| keys.iter().try_for_each(|key| files.delete(key)))
    }
}

impl Files {
    /// The file of a key, which lies inside the folder whatever the key says.
    fn path(&self, key: &str) -> Result<PathBuf> {
        let mut path = self.root.clone();
        for segment in key.trim_end_matches('/').split('/') {
            if matches!(segment, "" | "." | "..") || segment.contains(std::path::MAIN_SEPARATOR) {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    format!("{key:?} is no key of a blob"),
                ));
            }
            path.push(segment);
        }
        Ok(path)
    }

    fn page(&self, ask: &Ask) -> Result<Page> {
        let folder =
            if ask.prefix.is_empty() { self.root.clone() } else { self.path(&ask.prefix)? };
        let mut names = Vec::new();
        collect(&folder, &ask.prefix, ask.by_folder, &mut names)?;
        names.sort_unstable();
        let first = ask
            .after
            .as_ref()
            .or(ask.start.as_ref())
            .map_or(0, |after| names.partition_point(|name| name <= after));
        let last = names.len().min(first + PAGE);
        let mut page =
            Page { next: (last < names.len()).then(|| names[last - 1].clone()), ..Page::default() };
        for name in names.drain(first..last) {
            if name.ends_with('/') {
                page.folders.push(name);
            } else if let Some(modified_ms) = unless_gone(self.modified_ms(&name))? {
                page.blobs.push(Blob { key: name, modified_ms });
            }
        }
        Ok(page)
    }

    fn modified_ms(&self, key: &str) -> Result<u64> {
        let modified = std::fs::metadata(self.path(key)?)?.modified()?;
        let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn place(
        &self,
        key: &str,
        bytes: &[u8],
        place: impl Fn(&Path, &Path) -> Result<()>,
    ) -> Result<()> {
        let path = self.path(key)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let aside = self.root.join(format!("{ASIDE}{}-{number}", std::process::id()));
        std::fs::write(&aside, bytes)?;
        place(&aside, &path)
    }

    /// Removes a file, and the folders it leaves empty.
    fn delete(&self, key: &str) -> Result<()> {
        let path = self.path(key)?;
        unless_gone(std::fs::remove_file(&path))?;
        for folder in path.ancestors().skip(1).take_while(|folder| *folder != self.root) {
            if std::fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// The keys below a folder; with `by_folder` its own entries alone, folders with a slash.
fn collect(folder: &Path, base: &str, by_folder: bool, names: &mut Vec<String>) -> Result<()> {
    for entry in unless_gone(std::fs::read_dir(folder))?.into_iter().flatten() {
        let entry = entry?;
        let Some(name) =
            entry.file_name().to_str().map(str::to_owned).filter(|name| !name.starts_with(ASIDE))
        else {
            continue;
        };
        match (entry.file_type()?.is_dir(), by_folder) {
            (true, true) => names.push(format!("{base}{name}/")),
            (true, false) => collect(&entry.path(), &format!("{base}{name}/"), false, names)?,
            (false, _) => names.push(format!("{base}{name}")),
        }
    }
    Ok(())
}

/// Whether there is no file: nothing, or a file where a folder would have to be.
fn is_absence(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}

fn unless_gone<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
