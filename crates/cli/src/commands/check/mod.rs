//! `lastmile check`: finds errors in subscription files or in a deployment.
//!
//! After the findings, a table shows the destination and the attempts of each subscription
//! ([`summary`]).
//!
//! Exit code 0 means that the subscriptions can be deployed, perhaps with warnings; 1 that they
//! cannot; 2 that a file could not be read. With `--stack`, the subscriptions are also compared
//! with a deployed stack: its timeout, the addresses that it may send to, and the sinks that it may
//! write to.
//!
//! In a deployment, which several owners change, `check` also finds problems that no owner can see
//! in their own files.

mod summary;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use adapters::aws_identity::Identity;
use adapters::machine::Machine;
use clap::{ArgGroup, ValueEnum};
use delivery::native::mismatches;
use delivery::ports::{AwsIdentity as _, Clock as _};
use delivery::subscription::Subscription;
use delivery::subscription::auth::TokenSource;
use delivery::subscription::catalogue::Catalogue;
use dialects::{Finding, Reading, Severity};
use serde::Serialize;

use self::summary::Rules;
use crate::operations::aws_targets::TargetRules;
use crate::operations::files::{Files, have_errors};
use crate::operations::lints::{AddressRules, lints_at, lints_of_settings, with_lints};
use crate::operations::missing_destinations;
use crate::operations::place::{Place, SubscriptionsPlace};
use crate::operations::stack::Stack;
use crate::operations::topics::{self, Deployed, Wanted};
use crate::operations::writable::Problem;
use crate::terminal::help::{FILES, OUTPUT, examples};
use crate::terminal::output::{note, out, out_json};
use crate::terminal::text;
#[cfg(feature = "aws")]
use {
    crate::operations::stack::aws,
    crate::operations::target_permissions::{Simulated, simulated},
    crate::terminal::advice::chain,
    adapters::aws_ports::with_limits,
};

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("given").args(["files", "more_files"]).multiple(true)))]
#[command(mut_group("deployment", |group| group.required(false)))]
#[command(
    after_long_help = examples!(
        "docs/guides/subscribe.md",
        "lastmile check subscriptions.yaml",
        "lastmile check -f subscriptions/ --stack orders-prod",
        "lastmile check --to s3://config-bucket/subscriptions/ --output json",
    )
)]
pub(crate) struct Arguments {
    /// Subscription files, or folders with subscription files
    ///
    /// Without files, --to or --stack names the deployment to check. With files, --stack also
    /// checks limits and permissions of the stack.
    #[arg(required_unless_present_any = ["to", "stack", "more_files"], conflicts_with = "to", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Subscription files, like the argument FILE
    #[arg(short = 'f', long = "file", num_args = 1.., conflicts_with = "to", value_name = "FILE", help_heading = FILES)]
    more_files: Vec<PathBuf>,
    #[command(flatten)]
    place: SubscriptionsPlace,
    /// For each destination that the files name without an address, add the name to this
    /// Destinations file, with a placeholder for the address. The file is also checked
    #[arg(long, value_name = "FILE", requires = "given")]
    write_destinations: Option<PathBuf>,
    /// Output format
    #[arg(long, default_value = "text", value_name = "FORMAT", help_heading = OUTPUT)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One line per finding, as file:line:column: severity: field: message; help. Then a table of
    /// the subscriptions
    Text,
    /// One JSON object: {"findings":[…]}
    Json,
}

/// The result of a check: the findings, and the data that is printed after them.
#[derive(Serialize)]
struct Report {
    findings: Vec<Finding>,
    /// The number of subscriptions of each owner; `None` if files are checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    owners: Option<BTreeMap<String, usize>>,
    /// The number of subscriptions without an error.
    #[serde(skip)]
    subscriptions: usize,
    /// The formatted table with the destination and the attempts of each subscription.
    #[serde(skip)]
    summary: String,
}

pub(crate) async fn run(mut arguments: Arguments) -> anyhow::Result<ExitCode> {
    arguments.files.append(&mut arguments.more_files);
    if let Some(path) = &arguments.write_destinations {
        missing_destinations::complete(path, &mut arguments.files)?;
    }
    let report = report(&arguments).await?;
    match arguments.output {
        Output::Text => print_text(&report)?,
        Output::Json => out_json(&serde_json::to_string(&report)?)?,
    }
    Ok(if have_errors(&report.findings) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn report(arguments: &Arguments) -> anyhow::Result<Report> {
    let now_ms = Machine.now_ms();
    let place = Place::from(arguments.place.clone());
    let paths = &arguments.files;
    let (reading, mut findings, stack, owners) = if paths.is_empty() {
        let (stack, location) = (place.stack().await?, place.subscriptions().await?);
        let Deployed { reading, owners, .. } = topics::read(&location, Wanted::All).await?;
        let findings = of_deployment(&reading, now_ms, stack)?;
        (reading, findings, stack, Some(owners))
    } else {
        let files = Files::read(paths)?;
        let reading = files.reading_with_blank();
        let stack = place.stack().await?;
        let findings = with_lints(&reading, files.names(), now_ms, stack)?;
        (reading, findings, stack, None)
    };
    if let Some(stack) = stack {
        findings.extend(federation(&reading.catalogue).await);
        findings.extend(target_permissions(stack, &reading.catalogue).await);
    }
    let subscriptions = reading.catalogue.subscriptions().count();
    let summary = match arguments.output {
        Output::Text => {
            let rules =
                Rules { addresses: AddressRules::load(stack)?, targets: TargetRules::load(stack)? };
            summary::table(&reading, &rules, now_ms)
        }
        Output::Json => String::new(),
    };
    let owners = owners.map(|owners| {
        owners.into_values().fold(BTreeMap::new(), |mut counts, owner| {
            *counts.entry(owner.to_string()).or_default() += 1;
            counts
        })
    });
    Ok(Report { findings, owners, subscriptions, summary })
}

/// Requests an AWS token with the user's own credentials, for the first subscription that needs
/// one. Returns a warning if the request fails, for example because outbound identity federation is
/// disabled in the account, or because the user lacks the permission `sts:GetWebIdentityToken`.
async fn federation(catalogue: &Catalogue) -> Option<Finding> {
    let needed = catalogue.subscriptions().find_map(|subscription| {
        match subscription.destination.token_source()? {
            TokenSource::Aws(identity) => Some((subscription, identity)),
            TokenSource::Client(_) => None,
        }
    });
    let (subscription, identity) = needed?;
    let why = Identity::of_person(|_| true).web_identity_token(identity).await.err()?;
    let name = &subscription.name;
    let message =
        format!("{name} uses an AWS token, which cannot be requested with your credentials: {why}");
    Some(Problem::warning(message).in_file(name.to_string(), "auth"))
}

/// Simulates in IAM whether the stack's role may call the AWS targets of the subscriptions. Uses
/// the user's own credentials.
#[cfg(feature = "aws")]
async fn target_permissions(stack: &Stack, catalogue: &Catalogue) -> Vec<Finding> {
    let client = aws_sdk_iam::Client::new(&with_limits(aws().await));
    match simulated(&client, stack, catalogue).await {
        Ok(found) => of_targets(found, stack),
        Err(why) => {
            let why = chain(&why);
            let message =
                format!("the permissions of InvokeRoleArn for AWS targets were not checked: {why}");
            vec![Problem::warning(message).in_file(stack.name.clone(), "aws")]
        }
    }
}

/// Converts the result of a simulation to findings: one for each denied target, and one for targets
/// that were not simulated.
#[cfg(feature = "aws")]
fn of_targets(Simulated { asked: _, left, refused }: Simulated, stack: &Stack) -> Vec<Finding> {
    let refused =
        refused.into_iter().map(|(name, problem)| problem.in_file(name.to_string(), "aws"));
    let left = (left > 0).then(|| {
        let targets = text::counted(left as u64, "target");
        let message = format!(
            "the permissions of InvokeRoleArn for {targets} were not checked: check simulates only \
             the first targets in IAM"
        );
        Problem::warning(message).in_file(stack.name.clone(), "aws")
    });
    refused.chain(left).collect()
}

/// Returns no findings, because this build has no IAM client and cannot describe a stack.
#[cfg(not(feature = "aws"))]
async fn target_permissions(_: &Stack, _: &Catalogue) -> Vec<Finding> {
    Vec::new()
}

/// Returns all findings about the subscriptions of a deployment, sorted by name. Findings about the
/// settings come last.
fn of_deployment(
    reading: &Reading,
    now_ms: u64,
    stack: Option<&Stack>,
) -> anyhow::Result<Vec<Finding>> {
    let name = |subscription: &Subscription| subscription.name.to_string();
    let find = |subscription: &Subscription, field: &str, problem: Problem| {
        problem.in_file(name(subscription), field)
    };
    let catalogue = &reading.catalogue;
    let mut findings = reading.findings.clone();
    findings.extend(mismatches(catalogue, name));
    findings.extend(lints_at(catalogue, now_ms, stack, find)?);
    findings.sort_by(|a, b| a.file.cmp(&b.file));
    findings.extend(lints_of_settings(catalogue));
    Ok(findings)
}

/// Prints findings and subscriptions to standard output, and the number of each to standard error.
fn print_text(report: &Report) -> anyhow::Result<()> {
    let Report { findings, owners, subscriptions, summary } = report;
    let lines = findings.iter().map(|finding| format!("{}\n", text::line(&finding.to_string())));
    let between = if findings.is_empty() || summary.is_empty() { "" } else { "\n" };
    out(&format!("{}{between}{summary}", lines.collect::<String>()))?;
    for (owner, count) in owners.iter().flatten() {
        let subscriptions = text::counted(*count as u64, "subscription");
        note(format_args!("owner {}: {subscriptions}", text::line(&format!("{owner:?}"))));
    }
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    note(format_args!(
        "valid subscriptions: {subscriptions}; errors: {errors}; warnings: {warnings}"
    ));
    Ok(())
}
