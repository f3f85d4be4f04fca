//! How a namespace is changed: new nodes, then a version that names them, then the pointer.
//!
//! A crash at any point leaves a pointer that names a whole version, because nothing it names is written
//! after it or ever changed. What was written and is not named is garbage.
//!
//! Two who change one namespace at once start from one pointer, and only one of them replaces it. The other
//! one begins again from the newest pointer, and asks again what to change.
//!
//! The answer to a replacement may be lost. So a writer whose replacement did not succeed looks, at once and in each
//! further try, whether the pointer's version or one before it is its own. Otherwise its change could be made twice,
//! the second time over a change of somebody else. Each commit draws a random number, which is in everything it
//! writes, so no two commits write one version.
//!
//! Where the pointer is missing, a commit first writes it again, naming the newest version there is
//! ([`Namespace::load_to_change`]). So every version comes after one that a pointer named: without that, the highest
//! number could be that of several changes in a row of which none was made.
//!
//! What was changed is announced in the [hint](crate::hint). A commit that cannot be announced is made all the same.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use delivery::ports::{Clock, JitterSource};
use delivery::subscription::name::is_name;
use delivery::subscription::schedule::Jitter;
use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::error::{CommitError, ReadError};
use crate::format::{Entry, Id, Node, Pointer, Version, summary};
use crate::hint::announce;
use crate::namespace::{Namespace, REQUESTS_MAX, Snapshot};
use crate::objects::{Objects, StoreError};
use crate::tree::{self, Changes, Edit, NewTree, Run, TooManyLeaves};
use crate::wait::wait;

/// How often a commit is tried while others are faster.
const TRIES_MAX: u32 = 20;
/// The longest commit: far less than the time after which its objects count as old.
const COMMIT_MAX_MS: u64 = 24 * 60 * 60 * 1_000;

/// What a commit did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The number of the version that has the change; 0 if there is no version, because nothing was ever changed.
    pub number: u64,
    /// The id of that version. If there was nothing to change, it was there before.
    pub version: Option<Id>,
    /// How many objects were written, in all tries, with the pointer.
    pub objects_written: u64,
    /// Their bytes.
    pub bytes_written: u64,
    /// How often it was tried again, because somebody else was faster or the pointer was missing.
    pub conflicts: u32,
    /// Why readers could not be told of the new version, if they could not: they find it within minutes, not half a
    /// minute.
    pub unannounced: Option<StoreError>,
}

/// A version that may have become the newest.
struct Attempt {
    version: Version,
    /// What the pointer named before; `None` where there was none.
    base: Option<Id>,
}

/// One commit over all its tries.
struct Commit<'a, O> {
    namespace: &'a Namespace<'a, O>,
    by: &'a str,
    /// Random: 16 hexadecimal digits.
    nonce: String,
    attempts: Vec<Attempt>,
    written: HashSet<Id>,
    objects_written: u64,
    bytes_written: u64,
    unannounced: Option<StoreError>,
    /// A missing pointer was written and the answer perhaps lost: then nobody has announced it.
    may_have_restored: bool,
}

impl<O: Objects> Namespace<'_, O> {
    /// Changes entries, all or none, and writes nothing if nothing differs. `change` is asked what to change for each
    /// try, given the newest snapshot, which has no version before the first commit; it may read from it. `by` says for
    /// the history who it was.
    ///
    /// All changes of one commit and the leaves they change are held in memory: a million entries are
    /// several commits.
    ///
    /// # Errors
    /// [`CommitError`]; but for [`CommitError::Uncertain`], nothing was changed. Whatever the error of the very first
    /// change of a namespace, or of one whose pointer is lost meanwhile, the next change may end it before its own.
    pub async fn commit<F, E>(
        &self,
        machine: &(impl Clock + JitterSource),
        by: &str,
        change: impl Fn(Snapshot) -> F,
    ) -> Result<Committed, CommitError<E>>
    where
        F: Future<Output = Result<Changes, E>>,
    {
        let begun_ms = machine.now_ms();
        let [Jitter(high), Jitter(low)] = [(); 2].map(|()| machine.next_jitter());
        let mut commit = Commit {
            namespace: self,
            by,
            nonce: format!("{high:08x}{low:08x}"),
            attempts: Vec::new(),
            written: HashSet::new(),
            objects_written: 0,
            bytes_written: 0,
            unannounced: None,
            may_have_restored: false,
        };
        for conflicts in 0..TRIES_MAX {
            if conflicts > 0 {
                wait(machine, conflicts).await;
            }
            let loaded = match self.load_to_change().await {
                // Others may be writing the first version.
                Err(ReadError::SeveralNewest { .. }) if conflicts + 1 < TRIES_MAX => continue,
                loaded => loaded.map_err(|error| commit.failed(error))?,
            };
            let (snapshot, base) = loaded
                .map_or_else(Default::default, |(snapshot, version)| (snapshot, Some(version)));
            let base = base.as_ref();
            if let Some(base) = base.filter(|_| snapshot.is_without_pointer()) {
                commit.restore(machine, base).await.map_err(|error| commit.failed(error))?;
                continue;
            }
            let landed = commit.landed(snapshot.version).await;
            if let Some(own) = landed.map_err(|error| commit.failed(error))? {
                commit.announce(machine).await;
                return Ok(commit.done(Some(&own), conflicts));
            }
            let changes = change(snapshot.clone()).await.map_err(CommitError::Change)?;
            let tree = self.changed(&snapshot, changes, &commit.nonce).await;
            let tree = tree.map_err(|error| commit.failed(error))?;
            if tree.differences.is_empty() {
                if commit.may_have_restored {
                    commit.announce(machine).await;
                }
                return Ok(commit.done(base, conflicts));
            }
            let (version, bytes) = commit.version(base, &tree, machine.now_ms());
            let pointer = commit.write(tree, &version, bytes).await;
            let pointer = pointer.map_err(|error| commit.failed(error))?;
            if machine.now_ms().saturating_sub(begun_ms) > COMMIT_MAX_MS {
                return Err(CommitError::TooSlow);
            }
            if let Some(version) = commit.replace(&snapshot, version, pointer).await? {
                commit.announce(machine).await;
                return Ok(commit.done(Some(&version), conflicts));
            }
        }
        // An own version that was written may still come into use: whoever finds no pointer names it.
        match &commit.attempts[..] {
            [] => Err(CommitError::Contention { tries: TRIES_MAX }),
            _ => {
                let source = StoreError("the pointer was refused in each try".to_owned());
                Err(commit.failed(ReadError::from(source)))
            }
        }
    }

    /// The tree after these changes; nothing is written.
    async fn changed<E>(
        &self,
        snapshot: &Snapshot,
        changes: Changes,
        nonce: &str,
    ) -> Result<NewTree, CommitError<E>> {
        let edits = changes.into_edits();
        edits.iter().try_for_each(|(key, edit)| self.check(key, edit))?;
        let mut read: HashMap<Id, Arc<Node>> = HashMap::new();
        loop {
            let mut places = match tree::run(snapshot.root(), &edits, &read, self.limits, nonce) {
                Run::Done(tree) => return Ok(tree),
                Run::Violated(violation) => {
                    let current = violation.current.map(|value| value.to_string());
                    return Err(CommitError::Unexpected {
                        key: violation.key.to_string(),
                        current,
                    });
                }
                Run::TooManyLeaves(TooManyLeaves { topic, leaves }) => {
                    let max = self.limits.topic_leaves;
                    return Err(CommitError::TopicTooLarge { topic, leaves, max });
                }
                Run::Needs(places) => places,
            };
            places.sort_by_key(|place| place.id);
            places.dedup();
            let ids: Vec<Id> = places.iter().map(|place| place.id).collect();
            read.extend(ids.into_iter().zip(self.nodes(places).await?));
        }
    }

    fn check<E>(&self, key: &Arc<str>, edit: &Edit) -> Result<(), CommitError<E>> {
        let is_key = key
            .split_once('/')
            .is_some_and(|(topic, name)| is_name(topic) && (name.is_empty() || is_name(name)));
        if !is_key {
            return Err(CommitError::InvalidKey { key: key.to_string() });
        }
        let Some(Some(value)) = &edit.set else { return Ok(()) };
        let bytes = Entry { key: key.clone(), value: value.clone() }.written_bytes();
        let max_bytes = self.limits.entry;
        if bytes <= max_bytes {
            return Ok(());
        }
        Err(CommitError::TooLarge { key: key.to_string(), bytes, max_bytes })
    }
}

impl<O: Objects> Commit<'_, O> {
    /// The version of this commit that the newest one is or came after, if an attempt did succeed.
    async fn landed(&mut self, newest: Option<Id>) -> Result<Option<Version>, ReadError> {
        let numbers = self.attempts.iter().map(|attempt| attempt.version.number);
        let Some(oldest) = numbers.min() else { return Ok(None) };
        let mut next = newest;
        while let Some(id) = next {
            if let Some(own) = self.attempts.iter().find(|attempt| attempt.version.id == id) {
                return Ok(Some(own.version.clone()));
            }
            let version = self.namespace.version(id).await?;
            next = version.previous.filter(|_| version.number > oldest);
        }
        // An attempt whose pointer has been replaced by others can no longer succeed: no pointer comes back, but for one
        // that is lost.
        self.attempts.retain(|attempt| newest.is_none() || attempt.base == newest);
        Ok(None)
    }

    /// Writes the pointer that is missing, and tells readers. If somebody else was faster, or so it seems, the next try
    /// finds what there is.
    async fn restore(
        &mut self,
        machine: &(impl Clock + JitterSource),
        newest: &Version,
    ) -> Result<(), ReadError> {
        let pointer = self.namespace.pointer_to(newest).await?.write();
        self.count(&pointer);
        let objects = self.namespace.objects;
        if objects.replace(&self.namespace.pointer_key(), pointer, None).await? {
            self.announce(machine).await;
        } else {
            self.may_have_restored = true;
        }
        Ok(())
    }

    async fn announce(&mut self, machine: &(impl Clock + JitterSource)) {
        let announced = announce(self.namespace.objects, machine, &self.namespace.name).await;
        self.unannounced = announced.err();
    }

    /// What it means for the change that something cannot be read or written: an earlier attempt may still succeed.
    fn failed<E>(&self, error: impl Into<CommitError<E>>) -> CommitError<E> {
        match (error.into(), self.attempts.last()) {
            (CommitError::Read(source), Some(attempt)) => uncertain(&attempt.version, source),
            (error, _) => error,
        }
    }

    /// What the new version says, before its id is known.
    fn version(&self, base: Option<&Version>, tree: &NewTree, time_ms: u64) -> (Version, Vec<u8>) {
        let of_kind =
            |kind| tree.differences.iter().filter(move |it| it.kind == kind).count() as u64;
        let before = base.map_or(0, |base| base.entries);
        let version = Version {
            id: Id::of(&[]),
            number: base.map_or(0, |base| base.number).saturating_add(1),
            root: tree.root.as_ref().map(|(id, _)| *id),
            entries: (before + of_kind(tree::Kind::Added))
                .saturating_sub(of_kind(tree::Kind::Removed)),
            previous: base.map(|base| base.id),
            time_ms,
            by: self.by.to_owned(),
            what: summary(tree.differences.iter().map(ToString::to_string)),
        };
        version.write(&self.nonce)
    }

    /// Writes all objects, children first, then the version. The pointer that is to name it.
    async fn write(
        &mut self,
        tree: NewTree,
        version: &Version,
        bytes: Vec<u8>,
    ) -> Result<Pointer, ReadError> {
        let root = tree.root.as_ref().map(|(_, bytes)| bytes.clone());
        let own = vec![(version.id, bytes)];
        for level in tree.levels.into_iter().chain([tree.root.into_iter().collect(), own]) {
            self.put(level).await?;
        }
        Ok(Pointer { version: version.id, root })
    }

    /// Replaces the pointer. `None`: somebody else was faster, or so it seems.
    async fn replace<E>(
        &mut self,
        snapshot: &Snapshot,
        version: Version,
        pointer: Pointer,
    ) -> Result<Option<Version>, CommitError<E>> {
        self.attempts.push(Attempt { version: version.clone(), base: snapshot.version });
        let pointer = pointer.write();
        self.count(&pointer);
        let objects = self.namespace.objects;
        let key = self.namespace.pointer_key();
        let replaced = objects.replace(&key, pointer, snapshot.etag.as_deref()).await;
        if replaced == Ok(true) {
            return Ok(Some(version));
        }
        let landed = match self.namespace.load(None).await {
            Ok(newest) => self.landed(newest.and_then(|newest| newest.version)).await,
            Err(error) => Err(error),
        };
        match (landed, replaced) {
            (Ok(Some(version)), _) => Ok(Some(version)),
            (Ok(None), Ok(_)) => Ok(None),
            (Ok(None), Err(_)) if self.attempts.is_empty() => Ok(None),
            (Ok(None), Err(source)) => Err(uncertain(&version, source.into())),
            (Err(source), _) => Err(uncertain(&version, source)),
        }
    }

    /// Writes the objects that this commit has not written yet.
    async fn put(&mut self, objects: Vec<(Id, Vec<u8>)>) -> Result<(), ReadError> {
        let written = &mut self.written;
        let new: Vec<_> = objects.into_iter().filter(|(id, _)| written.insert(*id)).collect();
        new.iter().for_each(|(_, bytes)| self.count(bytes));
        let put = async |(id, bytes): (Id, Vec<u8>)| {
            self.namespace.objects.put(&self.namespace.object_key(id), bytes).await
        };
        stream::iter(new).map(put).buffer_unordered(REQUESTS_MAX).try_collect::<()>().await?;
        Ok(())
    }

    fn count(&mut self, bytes: &[u8]) {
        self.objects_written += 1;
        self.bytes_written += bytes.len() as u64;
    }

    fn done(&self, version: Option<&Version>, conflicts: u32) -> Committed {
        Committed {
            number: version.map_or(0, |version| version.number),
            version: version.map(|version| version.id),
            objects_written: self.objects_written,
            bytes_written: self.bytes_written,
            conflicts,
            unannounced: self.unannounced.clone(),
        }
    }
}

fn uncertain<E>(version: &Version, source: ReadError) -> CommitError<E> {
    CommitError::Uncertain { version: version.id.to_string(), source }
}
