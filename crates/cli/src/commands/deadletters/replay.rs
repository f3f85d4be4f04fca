//! `lastmile deadletters replay`: sends letters again, after saying exactly how many.

use std::process::ExitCode;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use delivery::subscription::name::TopicName;
use futures::stream::TryStreamExt as _;
use url::Url;

use super::meant::{Container, Meant};
use super::{Look, out};
use crate::letters::ledger::{Counts, State, is_job};
use crate::letters::replay::sender::{Sender, To};
use crate::letters::replay::{Pace, Plan, Rate, Replay, name_of, queue_of};
use crate::letters::{Letters, text};
use crate::progress;

/// So many chunks are named when they are uncertain.
const NAMED_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("whether").args(["dry_run", "yes"]).required(true)))]
pub(super) struct Arguments {
    #[command(flatten)]
    container: Container,
    /// These letters: ids, beginnings of ids, keys, or ids of events; without any, all that the
    /// options mean
    #[arg(value_name = "ID")]
    letters: Vec<String>,
    #[command(flatten)]
    meant: Meant,
    /// Say how many, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Send them
    #[arg(long)]
    yes: bool,
    /// At most so many, as in 50/s or 600/m
    #[arg(long, value_name = "N/s")]
    rate: Option<Rate>,
    /// Post the events to this address instead
    #[arg(long, value_name = "URL", conflicts_with = "to_topic")]
    to: Option<Url>,
    /// Publish the events to this topic instead, for whoever subscribes to it
    #[arg(long, value_name = "NS/TOPIC")]
    to_topic: Option<TopicName>,
    /// The events queue; without it, that of `lastmile dev`
    #[arg(long, value_name = "URL")]
    queue_url: Option<Url>,
    /// What the job is called; without it, after the moment
    #[arg(long, value_name = "JOB", value_parser = job)]
    name: Option<String>,
    /// Go on with a job that was broken off
    #[arg(long, value_name = "JOB", value_parser = job, conflicts_with_all = ["letters", "name", "to", "to_topic", "Meant"])]
    resume: Option<String>,
    /// Do not send again what a broken-off job may have sent
    #[arg(long, requires = "resume")]
    skip_uncertain: bool,
}

fn job(name: &str) -> Result<String, String> {
    let right = is_job(name).then(|| name.to_owned());
    right.ok_or_else(|| {
        format!("\"{name}\" is no name of a job: 1 to 100 of A-Z a-z 0-9 . _ - are expected")
    })
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let letters = arguments.container.open().await?;
    match arguments.resume.clone() {
        Some(job) => resume(&letters, &job, arguments).await,
        None => start(letters, arguments).await,
    }
}

async fn start(letters: Letters, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let to = match (arguments.to, arguments.to_topic) {
        (Some(url), _) => To::Url(url),
        (None, Some(topic)) => To::Topic(topic),
        (None, None) => To::Subscription,
    };
    let look = Look::begin(&letters);
    let plan = planned(&letters, &arguments.letters, arguments.meant, &to).await?;
    let summary = summary(&letters, &plan, &to).await?;
    look.clear();
    if plan.len() == 0 {
        name_homeless(&plan);
        return Ok(look.end(0));
    }
    out(&summary)?;
    name_homeless(&plan);
    if arguments.dry_run {
        look.end(plan.len());
        return Ok(ExitCode::SUCCESS);
    }
    let queue = queue_of(&to, arguments.queue_url, None)?;
    let sender = Sender::open(&to, &queue).await?;
    let job = arguments.name.unwrap_or_else(|| name_of(Machine.now_ms()));
    let kept = matches!(to, To::Subscription | To::Topic(_)).then(|| queue.to_string());
    let replay = Replay::start(&letters, job, &to, kept, plan).await?;
    send(replay, &sender, Pace { rate: arguments.rate, skip_uncertain: false }).await
}

async fn resume(letters: &Letters, job: &str, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let replay = Replay::resume(letters, job).await?;
    let (counts, uncertain) = (replay.counts(), replay.uncertain());
    let all = replay.header.letters as u64;
    out(&format!(
        "job {job} of {}: {} of {} have their end, {} to go\n",
        &replay.header.at[..19],
        text::grouped(counts.ended()),
        text::letters(all),
        text::grouped(all.saturating_sub(counts.ended()))
    ))?;
    if !uncertain.is_empty() {
        out(&uncertainty(&uncertain, arguments.skip_uncertain))?;
    }
    if arguments.dry_run || counts.ended() == all {
        return Ok(ExitCode::SUCCESS);
    }
    let to: To = replay.header.to.parse().map_err(anyhow::Error::msg)?;
    let queue = queue_of(&to, arguments.queue_url, replay.header.queue.as_deref())?;
    let sender = Sender::open(&to, &queue).await?;
    send(replay, &sender, Pace { rate: arguments.rate, skip_uncertain: arguments.skip_uncertain })
        .await
}

/// Which chunks nobody knows about, and what becomes of them.
fn uncertainty(uncertain: &[(u32, u64)], skip: bool) -> String {
    let count: u64 = uncertain.iter().map(|(_, letters)| letters).sum();
    let mut numbers: Vec<String> =
        uncertain.iter().map(|(number, _)| number.to_string()).take(NAMED_MAX).collect();
    if uncertain.len() > NAMED_MAX {
        numbers.push("…".to_owned());
    }
    let fate = if skip { "left alone, as told" } else { "sent again, with the same delivery ids" };
    format!(
        "{} uncertain chunks: {}; their {} may have been sent and are {fate}\n",
        uncertain.len(),
        numbers.join(" "),
        text::letters(count)
    )
}

async fn planned(
    letters: &Letters,
    wanted: &[String],
    meant: Meant,
    to: &To,
) -> anyhow::Result<Plan> {
    let filter = meant.filter()?;
    let mut plan = Plan::default();
    if wanted.is_empty() {
        let mut all = letters.all(&filter);
        while let Some(letter) = all.try_next().await? {
            plan.add(&letter, to);
        }
    } else {
        let found = letters.find(wanted).await?;
        found.iter().filter(|letter| filter.takes(letter)).for_each(|letter| plan.add(letter, to));
    }
    Ok(plan)
}

/// What would be sent where, and what of it was sent before.
async fn summary(letters: &Letters, plan: &Plan, to: &To) -> anyhow::Result<String> {
    let mut lines = match to {
        To::Subscription => format!("{} to send again:\n", text::letters(plan.len() as u64)),
        To::Topic(topic) => {
            format!("{} to publish to {topic}, from:\n", text::letters(plan.len() as u64))
        }
        To::Url(url) => format!("{} to post to {url}, from:\n", text::letters(plan.len() as u64)),
    };
    for (subscription, count) in &plan.subscriptions {
        lines.push_str(&format!("  {:>9}  {}\n", text::grouped(*count), text::line(subscription)));
    }
    let replayed = letters.replayed(&plan.ids()).await?;
    let sent = replayed.values().filter(|of| of.line.state == State::Sent).count() as u64;
    if sent > 0 {
        lines.push_str(&format!(
            "{} of them were sent again before; `lastmile deadletters jobs` lists by what\n",
            text::grouped(sent)
        ));
    }
    Ok(lines)
}

fn name_homeless(plan: &Plan) {
    for (place, count) in &plan.homeless {
        let (count, place) = (text::letters(*count), text::line(place));
        eprintln!(
            "skipped: {count} of {place}, which is no subscription; --to-topic or --to says where they may go"
        );
    }
}

async fn send(mut replay: Replay, sender: &Sender, pace: Pace) -> anyhow::Result<ExitCode> {
    let job = replay.header.job.clone();
    let all = replay.header.letters as u64;
    let bar = progress::bar(all.saturating_sub(replay.counts().ended()), "letters");
    eprintln!("job {job}");
    let began_ms = Machine.now_ms();
    let ran = replay
        .run(sender, pace, |counts| bar.inc(counts.ended() + counts.refused + counts.uncertain))
        .await;
    bar.finish_and_clear();
    let counts = replay.counts();
    out(&report(&job, &counts, all))?;
    let took_ms = Machine.now_ms().saturating_sub(began_ms);
    eprintln!("in {}.{:03} s", took_ms / 1_000, took_ms % 1_000);
    ran.map(
        |counts| {
            if counts.ended() == all { ExitCode::SUCCESS } else { ExitCode::from(super::WRONG) }
        },
    )
}

fn report(job: &str, counts: &Counts, all: u64) -> String {
    let mut lines =
        format!("{} of {} sent by the job {job}\n", text::grouped(counts.sent), text::letters(all));
    let others = [
        (counts.unfit, "cannot be sent this way".to_owned()),
        (counts.gone, "are not there any more".to_owned()),
        (counts.skipped, "were uncertain and left alone".to_owned()),
        (counts.refused, format!("were not taken: --resume {job} tries again")),
        (counts.uncertain, format!("are uncertain: --resume {job} goes on")),
    ];
    for (count, what) in others.iter().filter(|(count, _)| *count > 0) {
        lines.push_str(&format!("{} {what}\n", text::grouped(*count)));
    }
    lines
}
