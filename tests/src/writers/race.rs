//! Two writers at once, beside a reader and the removal of garbage.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

use catalogue::{ReadError, Version};
use tokio::runtime::{Builder, Runtime};

use super::{Ledger, Place, Reader};

/// Versions are readable for so many after them, where objects are aged in the place of waiting for 30 days.
pub const READABLE: u64 = 30;

/// What a race came to.
#[derive(Debug)]
pub struct Raced {
    /// How many versions were read meanwhile.
    pub reads: u64,
    /// How many objects were removed meanwhile.
    pub removed: u64,
    /// The newest version at the end.
    pub newest: Version,
}

/// Lets two writers make so many changes together, while garbage is collected and every version that a reader finds is
/// whole. At the end the newest version has what was acknowledged, and the history a version for each change.
///
/// # Panics
/// When it is not so.
pub fn race(
    place: &Place,
    ledger: &Ledger,
    changes: u64,
    collect: impl FnMut() -> u64 + Send,
) -> Raced {
    place.fill();
    let (mut reader, runtime) = (Reader::of(&place.folder), runtime());
    let ended = &AtomicBool::new(false);
    let (reads, removed) = thread::scope(|scope| {
        let has_ended = Ended(ended);
        let writers = ["left", "right"]
            .map(|owner| scope.spawn(move || place.write(ledger, owner, changes / 2)));
        let collector = scope.spawn(move || repeat(ended, collect));
        let mut reads = 0;
        while !writers.iter().all(ScopedJoinHandle::is_finished) {
            reads += runtime.block_on(read(&mut reader, ledger));
        }
        drop(has_ended);
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        (reads, collector.join().expect("the removal of garbage"))
    });
    let (newest, found) = runtime.block_on(reader.read(ledger)).expect("a whole version");
    assert_eq!((newest.number, found), (changes + 1, ledger.acknowledged()));
    runtime.block_on(reader.history(ledger));
    ledger.assert_versions(changes);
    Raced { reads, removed, newest }
}

/// A runtime for one thread.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Says that the race has ended, also when it ends in a panic.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn repeat(ended: &AtomicBool, mut collect: impl FnMut() -> u64) -> u64 {
    let mut removed = 0;
    while !ended.load(Ordering::Relaxed) {
        removed += collect();
    }
    removed
}

/// Reads one version; 0 if it was replaced so long ago meanwhile that it was removed.
async fn read(reader: &mut Reader, ledger: &Ledger) -> u64 {
    let before = reader.newest();
    match reader.read(ledger).await {
        Ok(_) => 1,
        Err(error @ ReadError::Missing { .. }) => {
            let _ = reader.read(ledger).await;
            assert!(reader.newest() >= before + READABLE, "{error} after version {before}");
            0
        }
        Err(error) => panic!("{error}"),
    }
}
