//! `lastmile apply`: writes subscription files to the location from which a deployment reads them.
//!
//! Checks the files, shows the changes, asks for confirmation, and writes. Entries of other owners
//! are unchanged. A change takes effect in the functions within half a minute.

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;

use adapters::machine::Machine;
use clap::builder::NonEmptyStringValueParser;
use delivery::ports::Clock as _;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;

use crate::operations::change_record::RecordArgs;
use crate::operations::files::{Files, have_errors, print_findings};
use crate::operations::key_sets::PublicKeys;
use crate::operations::lints::with_lints;
use crate::operations::missing_destinations::report_placeholders;
use crate::operations::place::{Place, SubscriptionsPlace};
use crate::operations::set_aside;
use crate::operations::topic_news;
use crate::operations::topics::{Plan, Topics};
use crate::terminal::confirm::may_replace;
use crate::terminal::help::{CONFIRMATION, FILES, examples};
use crate::terminal::output::{note, out};
use crate::terminal::usage::usage_error;
use crate::views::changes::{print_changed, print_changes};
use crate::views::mapped_addresses::print_mappings;

/// The exit code of `--dry-run` if applying the files would change the deployment. Scripts can test
/// for it.
const DIFFERS: u8 = 2;
/// The number of objects that can be written for one cent. <https://aws.amazon.com/s3/pricing/>
const OBJECTS_PER_CENT: usize = 2_000;
/// The number of objects above which the cost of writing is shown.
const OBJECTS_UNPRICED: usize = 1_000;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/subscribe.md",
        "lastmile apply -f subscriptions.yaml --stack orders-prod",
        "lastmile apply -f billing/ --to s3://config-bucket/subscriptions/ \\\n      --owner billing --prune --yes",
    )
)]
pub(crate) struct Arguments {
    /// Subscription files, or folders with subscription files
    #[arg(short = 'f', long = "file", required = true, num_args = 1.., value_name = "FILE", help_heading = FILES)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    place: SubscriptionsPlace,
    #[command(flatten)]
    public_keys: PublicKeys,
    /// Name of the owner of these files, such as billing. Subscriptions of other owners are not
    /// changed
    #[arg(long, value_name = "NAME", default_value = "files", value_parser = NonEmptyStringValueParser::new())]
    owner: String,
    /// Also remove subscriptions and topics of this owner that are not in the files
    #[arg(long)]
    prune: bool,
    /// Show the changes, and apply nothing. Exit with code 2 if there are changes
    #[arg(long, help_heading = CONFIRMATION)]
    dry_run: bool,
    #[command(flatten)]
    record: RecordArgs,
    /// Do not ask for confirmation
    #[arg(long, conflicts_with = "dry_run", help_heading = CONFIRMATION)]
    yes: bool,
    /// Apply even if the files contain no subscription. With --prune, this removes all subscriptions
    /// of the owner
    #[arg(long, help_heading = CONFIRMATION)]
    allow_empty: bool,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { owner, prune, .. } = &arguments;
    let files = Files::read(&arguments.files)?;
    let place = Place::from(arguments.place.clone());
    let location = place.subscriptions().await?;
    let topics = Topics::at(&location).await;
    // Read the deployment-wide objects before the checks, because files may refer to their content.
    let beside = topics.beside().await?;
    let reading = files.reading_for(&beside.for_files(owner, *prune)?);
    let stack = place.stack().await?;
    let findings = with_lints(&reading, files.names(), Machine.now_ms(), stack)?;
    print_findings(&findings);
    if have_errors(&findings) {
        return Ok(ExitCode::FAILURE);
    }
    if report_placeholders(&reading.catalogue) {
        return Ok(ExitCode::FAILURE);
    }
    let mut plan = Plan::prepare(&topics, beside, owner, &reading, *prune).await?;
    let ([before, after], problems) = plan.catalogues()?;
    check_removal(&plan, owner, &reading.catalogue, arguments.allow_empty)?;
    if !problems.is_empty() {
        problems.iter().for_each(note);
        return Ok(ExitCode::FAILURE);
    }
    let removes = show(&plan, [&before, &after], owner)?;
    if let (true, Some(stack)) = (removes, stack) {
        let waiting = stack.messages_in("RetryQueueUrl").await?;
        out(&format!(
            "the retry queue contains about {waiting} deliveries of all subscriptions\n"
        ))?;
    }
    let sets = arguments.public_keys.compare([&before, &after], &reading.catalogue).await?;
    sets.print()?;
    let name = topics.objects.to_string();
    if plan.objects() == 0 && sets.is_empty() {
        out(&format!("{name}: up to date, nothing to do\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.dry_run {
        return Ok(ExitCode::from(DIFFERS));
    }
    if !may_replace(arguments.yes, &name)? {
        return Ok(ExitCode::FAILURE);
    }
    if !arguments.yes {
        plan.note_pause();
    }
    sets.publish().await?;
    let record = arguments.record.record(&location).await;
    let written = RefCell::new(Vec::new());
    let report = |topic: &TopicName, changed| {
        written.borrow_mut().push(topic.clone());
        print_changed(topic, changed)
    };
    let made = plan.make(&record, report).await;
    // Notify after an error too, because the functions already use the objects that were written.
    topic_news::tell(stack, &written.into_inner()).await;
    made?;
    sets.withdraw().await?;
    out(&format!("{name}: applied\n"))?;
    set_aside::tell_resumed(stack, &before, &after).await;
    Ok(ExitCode::SUCCESS)
}

/// Prints the changes of a plan, and the number of entries that it keeps. Returns true if the plan
/// removes something.
fn show(plan: &Plan<'_>, [before, after]: [&Catalogue; 2], owner: &str) -> anyhow::Result<bool> {
    let removes = print_changes(before, after)?;
    let [old, new] = plan.destinations();
    if print_mappings([&old, &new])? {
        note(
            "existing subscriptions keep the old settings of changed and removed Destinations \
             entries: apply their files again",
        );
    }
    if plan.readdressed() > 0 {
        let count = plan.readdressed();
        note(format_args!(
            "stored entries of all owners that change to the new address of a reference: {count}"
        ));
    }
    if plan.left() > 0 {
        let left = plan.left();
        note(format_args!(
            "entries of {owner:?} that are not in the files: {left}; use --prune to remove them"
        ));
    }
    let objects = plan.objects();
    if objects > OBJECTS_UNPRICED {
        let cents = objects.div_ceil(OBJECTS_PER_CENT);
        let (dollars, cents) = (cents / 100, cents % 100);
        note(format_args!(
            "{objects} objects will be written, which costs about ${dollars}.{cents:02}"
        ));
    }
    Ok(removes)
}

/// Prints a warning if a plan removes all subscriptions of an owner. Fails if the files contain no
/// subscriptions, unless an option allows that.
fn check_removal(
    plan: &Plan<'_>,
    owner: &str,
    files: &Catalogue,
    allow_empty: bool,
) -> anyhow::Result<()> {
    if plan.removes_all() {
        note(format_args!("apply would remove all current subscriptions of {owner:?}"));
    }
    if files.subscriptions().next().is_none() && !allow_empty {
        return Err(usage_error(
            "the files contain no subscription; use --allow-empty to apply them",
        ));
    }
    Ok(())
}
