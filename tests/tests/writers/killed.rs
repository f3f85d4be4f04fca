//! Writers that are killed at any moment. Acknowledged changes are present, and others are present
//! completely or not at all. Leftovers of killed writers do not disturb other writers.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use lastmile_tests::writers::{Ledger, Place, Reader, runtime, succeeded};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::report;

const SEED: u64 = 7;
/// SIGKILL.
const KILLED: Option<i32> = Some(9);
/// The pause between two checks for the beginning of a write.
const BETWEEN_LOOKS: Duration = Duration::from_micros(50);
/// The prefix of the names of files that are being written.
const TEMPORARY: &str = ".lastmile-";

#[test]
fn whenever_a_writer_is_killed_the_topic_is_whole_and_the_next_one_writes() {
    kill(60);
}

#[test]
#[ignore = "takes minutes: run by hand after a change of writing or of storage"]
fn of_writers_that_are_killed_five_hundred_times_the_topic_is_always_whole() {
    kill(500);
}

#[test]
fn whenever_the_first_writer_is_killed_the_next_one_makes_the_topic() {
    let mut killer = Killer::new();
    for _ in 0..20 {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::in_folder(folder.path());
        let is_acknowledged = killer.kill(place.put("first", "first", 1), folder.path());
        killer.time(place.put("second", "second", 1));
        let list = succeeded(place.command(&["subscriptions", "list", "shop"]));
        assert!(list.contains("shop/orders/second"), "{list}");
        assert!(list.contains("shop/orders/first") || !is_acknowledged, "{list}");
        let _ = succeeded(place.put("first", "first", 2));
    }
}

/// Kills processes at random moments, spread over the duration of a process or of its writes.
struct Killer {
    random: StdRng,
    /// The duration of the last process that was not killed.
    lasts: Duration,
}

impl Killer {
    fn new() -> Self {
        Self { random: StdRng::seed_from_u64(SEED), lasts: Duration::from_millis(50) }
    }

    /// Runs a command to its end. The command must succeed.
    fn time(&mut self, command: Command) {
        let begun_ms = Machine.now_ms();
        let _ = succeeded(command);
        self.lasts = Duration::from_millis(Machine.now_ms().saturating_sub(begun_ms).max(1));
    }

    /// Kills a command, half of the time after it has begun to write below this folder. Returns
    /// true if the command had succeeded already.
    fn kill(&mut self, mut command: Command, folder: &Path) -> bool {
        let before = files(folder);
        let mut running = command.spawn().expect("the program runs");
        if self.random.random() {
            while files(folder) == before && running.try_wait().expect("it is ours").is_none() {
                sleep(BETWEEN_LOOKS);
            }
            sleep(self.random.random_range(Duration::ZERO..self.lasts / 8));
        } else {
            sleep(self.random.random_range(Duration::ZERO..self.lasts));
        }
        running.kill().expect("it is ours");
        let status = running.wait().expect("it ends");
        assert!(status.success() || status.signal() == KILLED, "{status}");
        status.success()
    }
}

fn kill(kills: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let (place, ledger) = (Place::in_folder(folder.path()), Ledger::default());
    place.fill();
    let (mut reader, mut killer, runtime) = (Reader::new(&place.folder), Killer::new(), runtime());
    let (mut expected, mut ends) = (BTreeMap::new(), BTreeMap::<&str, u64>::new());
    for number in 1..=kills {
        let (name, files) = (format!("killed-{}", number % 5), files(folder.path()).0);
        ledger.begin(&name, number);
        let is_acknowledged = killer.kill(place.put("killed", &name, number), folder.path());
        let found = runtime.block_on(reader.read(&ledger));
        let is_made = found.get(&name) == Some(&number);
        let end = match (is_acknowledged, is_made) {
            (true, true) => "acknowledged",
            (true, false) => panic!("{name} is acknowledged and not there"),
            (false, true) => "made and not acknowledged",
            (false, false) if self::files(folder.path()).0 > files => "written and not made",
            (false, false) => "nothing written",
        };
        *ends.entry(end).or_default() += 1;
        if is_made {
            expected.insert(name, number);
        }
        assert_eq!(found, expected, "after kill {number}: {end}");
        ledger.begin("next", number);
        killer.time(place.put("next", "next", number));
        expected.insert("next".to_owned(), number);
    }
    assert_eq!(runtime.block_on(reader.read(&ledger)), expected);
    report(format_args!(
        "{kills} kills: {ends:?}; {} temporary files left",
        files(folder.path()).1
    ));
}

/// Returns the number of files, and the number of temporary ones among them. The lock of a folder
/// does not count as temporary.
fn files(folder: &Path) -> (usize, usize) {
    // A folder that is being created, or a file that is being moved, may be gone.
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.fold((0, 0), |(all, temporary), entry| {
        if entry.path().is_dir() {
            let (all_below, temporary_below) = files(&entry.path());
            return (all + all_below, temporary + temporary_below);
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_temporary = name.starts_with(TEMPORARY) && !name.ends_with("-0-0");
        (all + 1, temporary + usize::from(is_temporary))
    })
}
