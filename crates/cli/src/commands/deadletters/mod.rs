//! `lastmile deadletters`: looks at dead letters in their container, and sends them again.
//!
//! One verb, one file; what they share is `crate::letters`. Data goes to standard output,
//! everything else to standard error. Exit code 0 means found (and done), 1 that nothing was found,
//! 2 that something went wrong.

mod export;
mod jobs;
mod list;
mod meant;
mod purge;
mod replay;
mod rescue;
mod serve;
mod shape;
mod show;
mod stats;
mod tail;
mod why;

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use adapters::machine::Machine;
use clap::Subcommand;
use delivery::ports::Clock as _;
use indicatif::ProgressBar;

use crate::letters::{Letters, text};
use crate::progress;

pub(crate) use self::meant::Meant;

/// The exit code of something that went wrong.
const WRONG: u8 = 2;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists letters, newest first
    List(list::Arguments),
    /// Tells the whole story of a letter: event, history, last response
    Show(show::Arguments),
    /// Counts letters by reason, subscription, destination and hour
    Stats(meant::Summing),
    /// Groups letters by cause: destination, outcome, status and the first line of the response
    Why(meant::Summing),
    /// Sends letters again, each to its subscription alone
    Replay(Box<replay::Arguments>),
    /// Lists the jobs of replays
    Jobs(jobs::Arguments),
    /// Empties a last-resort queue into the container
    Rescue(rescue::Arguments),
    /// Writes whole letters, one JSON object per line
    Export(export::Arguments),
    /// Removes letters
    Purge(purge::Arguments),
    /// Shows letters as they are stored, until Ctrl-C
    Tail(tail::Arguments),
    /// Shows all of this as a page on this machine, until Ctrl-C
    Serve(serve::Arguments),
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let done = match arguments.verb {
        Verb::List(arguments) => list::run(arguments).await,
        Verb::Show(arguments) => show::run(arguments).await,
        Verb::Stats(arguments) => stats::run(arguments).await,
        Verb::Why(arguments) => why::run(arguments).await,
        Verb::Replay(arguments) => replay::run(*arguments).await,
        Verb::Jobs(arguments) => jobs::run(arguments).await,
        Verb::Rescue(arguments) => rescue::run(arguments).await,
        Verb::Export(arguments) => export::run(arguments).await,
        Verb::Purge(arguments) => purge::run(arguments).await,
        Verb::Tail(arguments) => tail::run(arguments).await,
        Verb::Serve(arguments) => serve::run(arguments).await,
    };
    done.or_else(|error| {
        // Whoever reads our output has seen enough.
        let closed = error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe);
        if closed {
            return Ok(ExitCode::SUCCESS);
        }
        eprintln!("lastmile: {error:#}");
        Ok(ExitCode::from(WRONG))
    })
}

/// Writes data; unlike `println!` it does not panic when nobody reads any more.
fn out(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()?;
    Ok(())
}

/// What looking cost, and what could not be read.
struct Look {
    began_ms: u64,
    letters: Letters,
    bar: ProgressBar,
}

impl Look {
    fn begin(letters: &Letters) -> Self {
        let place = letters.place().clone();
        let bar = progress::asking("storage requests", move || place.requests());
        Self { began_ms: Machine.now_ms(), letters: letters.clone(), bar }
    }

    /// Takes the progress away: what follows is data.
    fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Says on standard error what was found; the exit code says whether anything was.
    fn end(&self, found: usize) -> ExitCode {
        self.clear();
        let took_ms = Machine.now_ms().saturating_sub(self.began_ms);
        let place = self.letters.place();
        let strange = self.letters.strange();
        if strange.blobs > 0 {
            eprintln!(
                "{} blobs are no dead letters, such as {}",
                strange.blobs,
                text::plain(&strange.example)
            );
        }
        let what = match found {
            0 => "nothing found".to_owned(),
            found => text::letters(found as u64),
        };
        eprintln!(
            "{what} in {}; {} storage requests in {}.{:03} s",
            place.name,
            place.requests(),
            took_ms / 1_000,
            took_ms % 1_000
        );
        if found == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
