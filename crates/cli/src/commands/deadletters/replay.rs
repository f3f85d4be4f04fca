//! `lastmile deadletters replay`: sends dead letters again, after counting them exactly.

use std::process::ExitCode;

use adapters::machine::Machine;
use deadletters::DeadLetters;
use deadletters::ledger::{ReplayCounts, ReplayState, is_job_name};
use deadletters::replay::sender::{ReplaySender, ReplayTarget};
use deadletters::replay::{Rate, ReplayJob, ReplayPlan, RunOptions, job_name};
use delivery::ports::Clock as _;
use delivery::subscription::name::TopicName;
use futures::stream::TryStreamExt as _;
use url::Url;

use super::search::Search;
use super::selection::ContainerArgs;
use crate::filter_args::FilterArgs;
use crate::output::{note, out};
use crate::replay_sender::ReplayQueueArgs;
use crate::{progress, text};

/// The most uncertain chunks that are listed by number.
const LISTED_CHUNKS_MAX: usize = 20;

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("whether").args(["dry_run", "yes"]).required(true)))]
pub(super) struct Arguments {
    #[command(flatten)]
    container: ContainerArgs,
    /// These dead letters: ids, beginnings of ids, keys, or ids of events; without any, all that
    /// match the filters
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Count them, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Send them
    #[arg(long)]
    yes: bool,
    /// The most to send in a second or minute, as in 50/s or 600/m
    #[arg(long, value_name = "N/s")]
    rate: Option<Rate>,
    /// Post the events to this URL instead
    #[arg(long, value_name = "URL", conflicts_with_all = ["to_topic", "queue_url", "stack"])]
    to: Option<Url>,
    /// Publish the events to this topic instead, for all its subscriptions
    #[arg(long, value_name = "NS/TOPIC")]
    to_topic: Option<TopicName>,
    #[command(flatten)]
    queues: ReplayQueueArgs,
    /// The name of the job; by default the time it starts
    #[arg(long, value_name = "JOB", value_parser = parse_job_name)]
    name: Option<String>,
    /// Continue a job that was interrupted
    #[arg(long, value_name = "JOB", value_parser = parse_job_name, conflicts_with_all = ["ids", "name", "to", "to_topic", "FilterArgs"])]
    resume: Option<String>,
    /// Do not send again what an interrupted job may have sent
    #[arg(long, requires = "resume")]
    skip_uncertain: bool,
}

fn parse_job_name(name: &str) -> Result<String, String> {
    let valid = is_job_name(name).then(|| name.to_owned());
    valid.ok_or_else(|| {
        format!("\"{name}\" is not a valid job name: expected 1 to 100 of A-Z a-z 0-9 . _ -")
    })
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let letters = arguments.container.open().await?;
    match arguments.resume.clone() {
        Some(job) => resume(&letters, &job, arguments).await,
        None => start(letters, arguments).await,
    }
}

async fn start(letters: DeadLetters, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let target = match (arguments.to, arguments.to_topic) {
        (Some(url), _) => ReplayTarget::Url(url),
        (None, Some(topic)) => ReplayTarget::Topic(topic),
        (None, None) => ReplayTarget::Subscription,
    };
    let search = Search::start(letters);
    let letters = &search.letters;
    let plan = plan(letters, &arguments.ids, arguments.filter, &target).await?;
    let summary = summary(letters, &plan, &target).await?;
    search.clear();
    if plan.is_empty() {
        report_without_subscription(&plan);
        return Ok(search.finish(0));
    }
    out(&summary)?;
    report_without_subscription(&plan);
    if arguments.dry_run {
        search.finish(plan.len());
        return Ok(ExitCode::SUCCESS);
    }
    // Before the job starts: a queue that does not respond must not leave a ledger.
    let (sender, queue) = arguments.queues.open().await?.sender(&target, None).await?;
    let job = arguments.name.unwrap_or_else(|| job_name(Machine.now_ms()));
    let job = ReplayJob::start(letters, job, &target, queue.map(String::from), plan).await?;
    send(job, &sender, RunOptions { rate: arguments.rate, skip_uncertain: false }).await
}

async fn resume(
    letters: &DeadLetters,
    job: &str,
    arguments: Arguments,
) -> anyhow::Result<ExitCode> {
    let replay = ReplayJob::resume(letters, job).await?;
    let (counts, uncertain) = (replay.counts(), replay.uncertain());
    let all = replay.header.letters as u64;
    out(&format!(
        "job {job} of {}: {} of {} are finished, {} to go\n",
        text::seconds(&replay.header.at),
        text::grouped(counts.finished()),
        text::dead_letters(all),
        text::grouped(all.saturating_sub(counts.finished()))
    ))?;
    if !uncertain.is_empty() {
        out(&describe_uncertain(&uncertain, arguments.skip_uncertain))?;
    }
    if arguments.dry_run || counts.finished() == all {
        return Ok(ExitCode::SUCCESS);
    }
    let target: ReplayTarget = replay.header.to.parse().map_err(anyhow::Error::msg)?;
    let in_ledger = replay.header.queue.as_deref();
    let (sender, _) = arguments.queues.open().await?.sender(&target, in_ledger).await?;
    let (rate, skip_uncertain) = (arguments.rate, arguments.skip_uncertain);
    send(replay, &sender, RunOptions { rate, skip_uncertain }).await
}

/// Which chunks are uncertain, and whether they are sent again.
fn describe_uncertain(uncertain: &[(u32, u64)], skip: bool) -> String {
    let count: u64 = uncertain.iter().map(|(_, letters)| letters).sum();
    let mut numbers: Vec<String> =
        uncertain.iter().map(|(number, _)| number.to_string()).take(LISTED_CHUNKS_MAX).collect();
    if uncertain.len() > LISTED_CHUNKS_MAX {
        numbers.push("…".to_owned());
    }
    let what = if skip { "skipped" } else { "sent again, with the same delivery ids" };
    format!(
        "{} uncertain chunks: {}; their {} may have been sent and are {what}\n",
        uncertain.len(),
        numbers.join(" "),
        text::dead_letters(count)
    )
}

async fn plan(
    letters: &DeadLetters,
    ids: &[String],
    filter: FilterArgs,
    target: &ReplayTarget,
) -> anyhow::Result<ReplayPlan> {
    let filter = filter.filter()?;
    let mut plan = ReplayPlan::default();
    if ids.is_empty() {
        let mut all = letters.all(&filter);
        while let Some(letter) = all.try_next().await? {
            plan.add(&letter, target);
        }
    } else {
        let found = letters.find(ids).await?;
        let matching = found.iter().filter(|letter| filter.matches(letter));
        matching.for_each(|letter| plan.add(letter, target));
    }
    Ok(plan)
}

/// What would be sent where, and how much of it was sent before.
async fn summary(
    letters: &DeadLetters,
    plan: &ReplayPlan,
    target: &ReplayTarget,
) -> anyhow::Result<String> {
    let count = text::dead_letters(plan.len() as u64);
    let mut lines = match target {
        ReplayTarget::Subscription => format!("{count} to send again:\n"),
        ReplayTarget::Topic(topic) => format!("{count} to publish to {topic}, from:\n"),
        ReplayTarget::Url(url) => format!("{count} to post to {url}, from:\n"),
    };
    for (subscription, count) in &plan.subscriptions {
        lines.push_str(&format!("  {:>9}  {}\n", text::grouped(*count), text::line(subscription)));
    }
    let replayed = letters.replayed(Some(&plan.ids())).await?;
    let is_sent = |state: ReplayState| state == ReplayState::Sent;
    let sent = replayed.values().filter(|record| is_sent(record.entry.state)).count() as u64;
    if sent > 0 {
        lines.push_str(&format!(
            "{} of them were replayed before; `lastmile deadletters jobs` lists the jobs\n",
            text::grouped(sent)
        ));
    }
    Ok(lines)
}

fn report_without_subscription(plan: &ReplayPlan) {
    for (name, count) in &plan.without_subscription {
        let (count, name) = (text::dead_letters(*count), text::line(name));
        note(format_args!(
            "skipped: {count} of {name}, which is not a subscription; --to-topic or --to sends them elsewhere"
        ));
    }
}

async fn send(
    mut job: ReplayJob,
    sender: &ReplaySender,
    options: RunOptions,
) -> anyhow::Result<ExitCode> {
    let name = job.header.job.clone();
    let all = job.header.letters as u64;
    let bar = progress::bar(all.saturating_sub(job.counts().finished()), "dead letters");
    note(format_args!("job {name}"));
    let began_ms = Machine.now_ms();
    let on_chunk =
        |counts: ReplayCounts| bar.inc(counts.finished() + counts.refused + counts.uncertain);
    let ran = job.run(sender, options, on_chunk).await;
    bar.finish_and_clear();
    // Before the error, if there is one: what was sent has been sent.
    out(&report(&name, &job.counts(), all))?;
    let took_ms = Machine.now_ms().saturating_sub(began_ms);
    note(format_args!("in {}.{:03} s", took_ms / 1_000, took_ms % 1_000));
    let is_done = ran?.finished() == all;
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::from(super::FAILED) })
}

fn report(job: &str, counts: &ReplayCounts, all: u64) -> String {
    let (sent, all) = (text::grouped(counts.sent), text::dead_letters(all));
    let mut lines = format!("{sent} of {all} sent by the job {job}\n");
    let others = [
        (counts.unfit, "cannot be sent to this target".to_owned()),
        (counts.gone, "no longer exist".to_owned()),
        (counts.skipped, "were uncertain and skipped".to_owned()),
        (counts.refused, format!("were refused: --resume {job} tries again")),
        (counts.uncertain, format!("are uncertain: --resume {job} continues")),
    ];
    for (count, what) in others.iter().filter(|(count, _)| *count > 0) {
        lines.push_str(&format!("{} {what}\n", text::grouped(*count)));
    }
    lines
}
