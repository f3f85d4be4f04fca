//! `lastmile deadletters replay`: sends dead letters again, after counting them exactly.
//!
//! Prints the plan, the omitted dead letters, the target and the rate, asks for confirmation, and
//! then runs the job. `--until-quiet` repeats these steps in rounds ([`super::until_quiet`]).
//!
//! Promises: the command stops before anything is sent if a ledger is unreadable or the queue does
//! not respond.

use std::process::ExitCode;

use adapters::machine::Machine;
use anyhow::bail;
use deadletters::filter::Filter;
use deadletters::ledger::is_job_name;
use deadletters::replay::sender::ReplayTarget;
use deadletters::replay::{NewJob, ReplayJob, ReplayPlan, RunOptions, job_name};
use deadletters::state::LetterStates;
use deadletters::{DeadLetters, Rate};
use delivery::address::http_url;
use delivery::deadletter::stored::StoredDeadLetter;
use delivery::ports::Clock as _;
use delivery::subscription::name::TopicName;
use delivery::time::brief;
use url::Url;

use super::search::Search;
use super::selection::take_each;
use super::sending::send;
use super::{resume, until_quiet};
use crate::operations::destinations::stopped;
use crate::operations::filter_args::FilterArgs;
use crate::operations::place::{Place, ReplayPlace};
use crate::operations::replay_rate::RateUsed;
use crate::operations::replay_sender::ReplayQueues;
use crate::operations::stack::Stack;
use crate::operations::this_machine::user;
use crate::terminal::advice::chain;
use crate::terminal::confirm::may_proceed;
use crate::terminal::help::{CONFIRMATION, JOB, examples};
use crate::terminal::output::{note, out};
use crate::terminal::text;
use crate::terminal::usage::usage_error;
use crate::views::unreadable_ledger::{not_shown, refusal};

#[derive(Debug, Clone, clap::Args)]
#[command(group(clap::ArgGroup::new("whether").args(["dry_run", "yes"])))]
#[command(
    after_long_help = examples!(
        "docs/guides/replay.md",
        "lastmile deadletters replay --stack orders-prod --since 2h --dry-run",
        "lastmile deadletters replay 4f1c02aa --stack orders-prod --yes",
        "lastmile deadletters replay --stack orders-prod --status 5xx --rate 50/s --yes",
        "lastmile deadletters replay --cause 3f9a12c4 --wait 5m --yes",
    )
)]
pub(super) struct Arguments {
    #[command(flatten)]
    place: ReplayPlace,
    /// Dead letters, by id, prefix of the id, key of the blob or event id. Without ID, all.
    /// Filters, including the default of --state, apply to ids too
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    pub(super) filter: FilterArgs,
    /// Post the events to this URL instead of their destinations
    ///
    /// --resume needs the URL again if it contains credentials or a query string.
    #[arg(long, value_name = "URL", value_parser = http_url, conflicts_with_all = ["to_topic", "queue_url"], help_heading = JOB)]
    pub(super) to_url: Option<Url>,
    /// Publish the events to this topic, for all its subscriptions
    #[arg(long, value_name = "NS/TOPIC", help_heading = JOB)]
    to_topic: Option<TopicName>,
    /// Maximum rate, such as 50/s or 600/m. With --stack, the default is maxPerSecond of the
    /// destinations; otherwise 50/s. A resumed job keeps its rate
    #[arg(long, value_name = "N/s|N/m", help_heading = JOB)]
    pub(super) rate: Option<Rate>,
    /// Name of the job; by default its start time
    #[arg(long, value_name = "JOB", value_parser = parse_job_name, help_heading = JOB)]
    pub(super) name: Option<String>,
    /// Note to show in the list of jobs
    #[arg(long, help_heading = JOB, value_name = "TEXT")]
    note: Option<String>,
    /// Continue this interrupted job
    #[arg(long, value_name = "JOB", value_parser = parse_job_name, conflicts_with_all = ["ids", "name", "note", "to_topic", "FilterArgs"], help_heading = JOB)]
    resume: Option<String>,
    /// With --resume, do not send dead letters that the interrupted job may already have sent
    #[arg(long, requires = "resume", conflicts_with_all = ["ids", "name", "note", "to_topic", "FilterArgs"], help_heading = JOB)]
    pub(super) skip_uncertain: bool,
    /// Wait for all results, but no longer than this, such as 5m. Exit with code 1 unless all
    /// events were delivered
    #[arg(long, help_heading = JOB, value_name = "DURATION", value_parser = brief::parse_ms)]
    pub(super) wait: Option<u64>,
    /// After the job, also replay dead letters that arrive, until none arrives for this long. Use
    /// 12m after a pause or a disabled destination: functions may still finish messages that they
    /// received before. With --stack, also wait until the dead-letter queue is empty
    #[arg(long, help_heading = JOB, value_name = "DURATION", value_parser = brief::parse_ms, conflicts_with_all = ["dry_run", "resume", "wait", "ids"])]
    until_quiet: Option<u64>,
    /// Count the dead letters, and send nothing
    #[arg(long, help_heading = CONFIRMATION)]
    pub(super) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, help_heading = CONFIRMATION)]
    pub(super) yes: bool,
}

pub(super) enum Round {
    /// There was nothing to send. Contains the exit code.
    Nothing(ExitCode),
    /// The user declined to send.
    Declined,
    /// A job has sent dead letters.
    Sent {
        /// True if all dead letters were sent and, if the command waited, delivered.
        is_done: bool,
        /// True if each of the dead letters came from an earlier replay that failed.
        are_all_back: bool,
    },
}

pub(super) fn parse_job_name(name: &str) -> Result<String, String> {
    let valid = is_job_name(name).then(|| name.to_owned());
    valid.ok_or_else(|| {
        format!(
            "\"{name}\" is not a valid job name: expected 1 to 100 characters of A-Z a-z 0-9 . _ -"
        )
    })
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let place = Place::from(arguments.place.clone());
    let letters = place.dead_letters().await?;
    match arguments.resume.clone() {
        Some(job) => resume::run(&letters, &job, &place, arguments).await,
        None => start(letters, &place, arguments).await,
    }
}

async fn start(
    letters: DeadLetters,
    place: &Place,
    arguments: Arguments,
) -> anyhow::Result<ExitCode> {
    if let Some(quiet_ms) = arguments.until_quiet {
        return until_quiet::run(letters, place, arguments, quiet_ms).await;
    }
    match round(letters, place, arguments, None).await? {
        Round::Nothing(code) => Ok(code),
        Round::Declined => Ok(ExitCode::FAILURE),
        Round::Sent { is_done: true, .. } => Ok(ExitCode::SUCCESS),
        Round::Sent { is_done: false, .. } => Ok(ExitCode::from(super::FAILED)),
    }
}

/// Finds, counts and sends dead letters once: those in `new` or, if `new` is `None`, all that match
/// the arguments.
pub(super) async fn round(
    letters: DeadLetters,
    place: &Place,
    arguments: Arguments,
    new: Option<&[StoredDeadLetter]>,
) -> anyhow::Result<Round> {
    let target = target(arguments.to_url, arguments.to_topic);
    let queues = ReplayQueues::open(place, &letters.container).await?;
    let goes_to = queues.for_target(&target, None);
    if !arguments.dry_run
        && let Err(error) = goes_to
    {
        return Err(error);
    }
    let search = Search::start(letters);
    let letters = &search.letters;
    let filter = letters.with_states(arguments.filter.filter()?).await?;
    let (mut plan, mut left_out) = match new {
        Some(new) => (plan_of(new, &filter, &target), Vec::new()),
        None => plan(letters, &arguments.ids, &filter, &target).await?,
    };
    if let (ReplayTarget::Subscription, Some(stack)) = (&target, place.stack().await?) {
        let stopped = leave_out_stopped(stack, &mut plan).await?;
        if let (Some(first), true) = (stopped.first(), arguments.until_quiet.is_some()) {
            bail!("{first}");
        }
        left_out.extend(stopped);
    }
    if plan.is_empty() && arguments.until_quiet.is_some() {
        search.clear();
        return Ok(Round::Nothing(ExitCode::SUCCESS));
    }
    let summary = summary(&filter, &plan, &target);
    search.clear();
    left_out.iter().for_each(|line| note(format_args!("{line}")));
    if plan.is_empty() {
        report_without_subscription(&plan);
        return Ok(Round::Nothing(search.finish_filtered(filter, 0).await?));
    }
    out(&summary)?;
    report_without_subscription(&plan);
    match &goes_to {
        Ok(queue) => note(format_args!("target: {}", queues.describe(&target, queue.as_ref()))),
        Err(problem) => note(chain(problem)),
    }
    let rate = RateUsed::of_plan(arguments.rate, place.stack().await?, &target, &plan).await;
    note(rate.with_option());
    if arguments.dry_run {
        search.finish(plan.len());
        return Ok(Round::Sent { is_done: true, are_all_back: false });
    }
    if !may_proceed(arguments.yes, "send them?")? {
        return Ok(Round::Declined);
    }
    let are_all_back = plan.are_all_back();
    // Open the sender before the job starts. If the queue does not respond, the job must not have a
    // ledger.
    let (sender, queue) = queues.sender(&target, None).await?;
    let results = are_recorded(&queues, &target, queue.as_ref(), letters, &plan).await?;
    let job = arguments.name.unwrap_or_else(|| job_name(Machine.now_ms()));
    let queue = queue.map(String::from);
    let (rate, by, note) = (Some(rate.rate), user(), arguments.note);
    let new = NewJob { job, target, queue, results, rate, by, note };
    let job = ReplayJob::start(letters, new, plan).await?;
    let expects_set_aside = arguments.until_quiet.is_some();
    let options = RunOptions { expects_set_aside, ..RunOptions::default() };
    let place_options = place.dead_letter_options();
    let is_done = send(letters, job, &sender, options, arguments.wait, &place_options).await?;
    Ok(Round::Sent { is_done, are_all_back })
}

fn target(url: Option<Url>, topic: Option<TopicName>) -> ReplayTarget {
    match (url, topic) {
        (Some(url), _) => ReplayTarget::Url(url),
        (None, Some(topic)) => ReplayTarget::Topic(topic),
        (None, None) => ReplayTarget::Subscription,
    }
}

/// Plans a replay. Also returns lines about dead letters that the plan omits.
///
/// # Errors
/// If a ledger is unreadable, because it may record that dead letters were already sent.
async fn plan(
    letters: &DeadLetters,
    ids: &[String],
    filter: &Filter,
    target: &ReplayTarget,
) -> anyhow::Result<(ReplayPlan, Vec<String>)> {
    let unreadable = filter.states.unreadable();
    if let (Some(ledger), false) = (unreadable.first(), filter.is_of_any_state()) {
        bail!("{}; use --state all to send them regardless of earlier replays", refusal(ledger));
    }
    let mut plan = ReplayPlan::default();
    let take = |letter: &StoredDeadLetter| plan.add(letter, target);
    let left_out = take_each(letters, ids, filter, take).await?;
    let mut lines: Vec<String> = not_shown(unreadable).into_iter().chain(left_out).collect();
    let older = plan.leave_out_older(&filter.states);
    if older > 0 {
        let older = text::dead_letters(older);
        lines.push(format!(
            "omitted: {older} whose replays became dead letters again; the newer dead letters are sent instead"
        ));
    }
    lines.extend(planned_elsewhere(&plan, &filter.states));
    Ok((plan, lines))
}

/// Returns a warning about dead letters that an unfinished job may also send.
fn planned_elsewhere(plan: &ReplayPlan, states: &LetterStates) -> Option<String> {
    let ids = plan.ids();
    let jobs: Vec<&str> = ids.iter().filter_map(|letter| states.planned_by(*letter)).collect();
    let first = text::line(jobs.first()?);
    let letters = text::dead_letters(jobs.len() as u64);
    Some(format!(
        "also in the plan of the unfinished job {first}: {letters}. If that job is still running, \
         both jobs send them; if it is resumed later, it omits them"
    ))
}

/// Returns true if the outcomes of deliveries will be recorded in this container. Otherwise prints
/// a note.
///
/// # Errors
/// If no option names a queue, and `lastmile dev` on this machine uses another container.
async fn are_recorded(
    queues: &ReplayQueues,
    target: &ReplayTarget,
    queue: Option<&Url>,
    letters: &DeadLetters,
    plan: &ReplayPlan,
) -> anyhow::Result<bool> {
    let container = &letters.container;
    let results = queues.records_results(target, queue, container, plan.any_key()).await;
    if results || *target != ReplayTarget::Subscription {
        return Ok(results);
    }
    if queues.is_default() {
        return Err(usage_error(
            "the `lastmile dev` of this folder (or on the default port) does not respond, or uses another container: use \
             --queue-url for its queue, or --stack for a deployed stack",
        ));
    }
    note(format_args!(
        "results are not recorded, because {} is not the default container of the deployment",
        container.name
    ));
    Ok(false)
}

/// Removes dead letters from a plan if their subscription was paused or their destination was
/// disabled, and still is. Returns lines about the removed dead letters.
async fn leave_out_stopped(stack: &Stack, plan: &mut ReplayPlan) -> anyhow::Result<Vec<String>> {
    let names = plan.set_aside().into_iter().filter_map(|name| name.parse().ok()).collect();
    let stopped = stopped(stack, &names).await?;
    let left_out = plan.leave_out_stopped(|name| stopped.contains_key(name));
    let mut lines: Vec<String> = stopped.into_values().collect();
    if left_out > 0 {
        lines.push(format!("omitted: {} of the subscriptions above", text::dead_letters(left_out)));
    }
    Ok(lines)
}

fn plan_of(letters: &[StoredDeadLetter], filter: &Filter, target: &ReplayTarget) -> ReplayPlan {
    let mut plan = ReplayPlan::default();
    let matching = letters.iter().filter(|letter| filter.matches(letter));
    matching.for_each(|letter| plan.add(letter, target));
    plan
}

/// Describes the replay: its target, the number of dead letters for each subscription, and how many
/// of them were sent before.
fn summary(filter: &Filter, plan: &ReplayPlan, target: &ReplayTarget) -> String {
    let count = text::dead_letters(plan.len() as u64);
    let mut lines = match target {
        ReplayTarget::Subscription => format!("{count} to send again:\n"),
        ReplayTarget::Topic(topic) => format!("{count} to publish to {topic}, from:\n"),
        ReplayTarget::Url(_) => format!("{count} to post to {}, from:\n", target.shown()),
    };
    for (subscription, count) in &plan.subscriptions {
        lines.push_str(&format!("  {:>9}  {}\n", text::grouped(*count), text::line(subscription)));
    }
    let sent = plan.sent_before(&filter.states);
    if sent > 0 {
        lines.push_str(&format!(
            "{} of them were already replayed; `lastmile deadletters jobs` lists the jobs\n",
            text::grouped(sent)
        ));
    }
    lines
}

fn report_without_subscription(plan: &ReplayPlan) {
    for (name, count) in &plan.without_subscription {
        let (count, name) = (text::dead_letters(*count), text::line(name));
        note(format_args!(
            "skipped: {count} of {name}, which is not a subscription; use --to-topic or --to-url \
             to send them"
        ));
    }
    if plan.copies > 0 {
        let copies = text::dead_letters(plan.copies);
        note(format_args!(
            "skipped: {copies} with the id of another dead letter; rename the copied blob to a new \
             id to send it"
        ));
    }
    if plan.malformed_replies > 0 {
        let count = text::dead_letters(plan.malformed_replies);
        note(format_args!(
            "skipped: {count} with a reply that is not an event; use --to-url to send them"
        ));
    }
}
