//! `lastmile rollback`: restores earlier versions of topics, or of the entries that one owner has
//! in them.
//!
//! The bucket keeps the versions of each object. An earlier version is written as a new one, so
//! that a second rollback can undo the first. An invalid version is not restored.

use std::process::ExitCode;

use adapters::storage::{Storage, Version};
use anyhow::{Context as _, bail, ensure};
use clap::builder::NonEmptyStringValueParser;
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::TopicName;
use delivery::subscription::secret_policy::SecretPolicy;
use delivery::time::moment;
use delivery::topic_object;

use crate::operations::change_record::RecordArgs;
use crate::operations::key_sets::PublicKeys;
use crate::operations::place::{Place, SubscriptionsPlace};
use crate::operations::set_aside;
use crate::operations::topic_news;
use crate::operations::topics::{Change, Current, Object, Topics};
use crate::terminal::advice::chain;
use crate::terminal::confirm::may_replace;
use crate::terminal::help::{CONFIRMATION, examples};
use crate::terminal::output::{note, out};
use crate::terminal::text;
use crate::terminal::usage::usage_error;
use crate::views::changes::{print_changed, print_changes};

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = examples!(
        "docs/guides/subscribe.md",
        "lastmile rollback shop/orders --stack orders-prod",
        "lastmile rollback shop --to s3://config-bucket/subscriptions/ \\\n      --owner billing --at 2026-11-20T07:00:00Z --yes",
    )
)]
pub(crate) struct Arguments {
    /// Topic, or a namespace for all its topics. A namespace needs --at
    #[arg(value_name = "NS[/TOPIC]", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    #[command(flatten)]
    place: SubscriptionsPlace,
    #[command(flatten)]
    public_keys: PublicKeys,
    /// Restore only subscriptions and topics of this owner
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Restore the version that was current at this time, such as 2026-11-20T07:00:00Z. By default
    /// the version before the current one
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<u64>,
    #[command(flatten)]
    record: RecordArgs,
    /// Do not ask for confirmation
    #[arg(long, help_heading = CONFIRMATION)]
    yes: bool,
}

fn time(text: &str) -> Result<u64, String> {
    moment::parse(text).ok_or_else(|| "expected a time such as 2026-11-20T07:00:00Z".to_owned())
}

/// A topic to restore: its content before and after, and the change between them.
struct Restored {
    name: TopicName,
    before: Option<Object>,
    after: Option<Object>,
    change: Change,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { name, place, public_keys, owner, at, record, yes } = arguments;
    let place = Place::from(place);
    let location = place.subscriptions().await?;
    let topics = Topics::at(&location).await;
    let names = match name.parse::<TopicName>() {
        Ok(topic) => vec![topic],
        Err(_) if name.contains('/') => {
            return Err(usage_error(format!("{name:?} is not a topic")));
        }
        Err(_) => {
            let all = topics.names().await?;
            all.into_iter().filter(|topic| topic.namespace == name).collect()
        }
    };
    ensure!(!names.is_empty(), "{} has no topic in the namespace {name}", topics.objects);
    if names.len() > 1 && at.is_none() {
        return Err(usage_error("a rollback of a whole namespace requires --at"));
    }
    // If the settings are missing or invalid, restore the topics without checking the
    // `SecretPolicy`.
    let secrets = match topics.settings().await {
        Ok(settings) => settings.secrets,
        Err(error) => {
            note(format_args!("the SecretPolicy is not checked: {}", chain(&error)));
            SecretPolicy::default()
        }
    };
    let mut restored = Vec::new();
    for topic in names {
        restored.extend(restored_of(&topics, topic, owner.as_deref(), at).await?);
    }
    let [before, after] = catalogues(&restored, &secrets)?;
    print_changes(&before, &after)?;
    if restored.is_empty() {
        out("already in this state, nothing to do\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let sets = public_keys.compare([&before, &after], &after).await?;
    sets.print()?;
    if !may_replace(yes, &topics.objects.to_string())? {
        return Ok(ExitCode::FAILURE);
    }
    sets.publish().await?;
    let record = record.record(&location).await;
    let by = owner.as_deref().unwrap_or_default();
    for Restored { name, change, .. } in &restored {
        print_changed(name, topics.change(name, by, change, &record, None).await?)?;
    }
    let stack = place.stack().await?;
    let changed: Vec<TopicName> = restored.into_iter().map(|restored| restored.name).collect();
    topic_news::tell(stack, &changed).await;
    sets.withdraw().await?;
    set_aside::tell_resumed(stack, &before, &after).await;
    Ok(ExitCode::SUCCESS)
}

/// Finds the change that restores a topic; `None` if nothing would change.
async fn restored_of(
    topics: &Topics,
    name: TopicName,
    owner: Option<&str>,
    at: Option<u64>,
) -> anyhow::Result<Option<Restored>> {
    // Read the current object before its versions. If the object changes later, the write fails
    // instead of replacing the newer object. An unreadable object is replaced as a whole.
    let current = match topics.current(&name).await {
        Err(_) if owner.is_none() => topics.unusable(&name).await?,
        current => current?,
    };
    let version = version_of(topics, &name, at).await?;
    let earlier = match version {
        Some(version) => {
            let object = topics.version(&name, &version).await?.object;
            object
                .with_context(|| format!("the version {} of {name} was not restored", version.id))?
        }
        None => None,
    };
    let Current { object: before, etag: shown } = current;
    let change = match owner {
        Some(_) => Change::Restore(earlier),
        None => Change::Replace { earlier, shown },
    };
    let after = change.made_in(before.as_ref(), owner.unwrap_or_default());
    let after = after.with_context(|| format!("the topic {name} was not changed"))?;
    Ok((after != before).then_some(Restored { name, before, after, change }))
}

/// Returns the version of a topic that was current at the time `at`; without a time, the version
/// before the current one. Returns `None` if the topic never had an object.
///
/// # Errors
/// If all versions are newer than `at`. The topic may not have existed then, or its older versions
/// may have expired. In doubt, the topic is not removed.
async fn version_of(
    topics: &Topics,
    name: &TopicName,
    at: Option<u64>,
) -> anyhow::Result<Option<Version>> {
    let versions = topics.versions(name).await?;
    match at {
        Some(at_ms) => {
            let Some(oldest_ms) = versions.iter().map(|version| version.modified_ms).min() else {
                return Ok(None);
            };
            let at_that_time = versions.into_iter().find(|version| version.modified_ms <= at_ms);
            Ok(Some(at_that_time.with_context(|| {
                let oldest = text::at(Some(oldest_ms));
                format!(
                    "the topic {name} has no version from that time; its oldest version is from \
                     {oldest}"
                )
            })?))
        }
        None => {
            let earlier = versions.into_iter().find(|version| !version.is_current);
            Ok(Some(earlier.with_context(|| {
                let keeps = match topics.objects.storage() {
                    Storage::Bucket(_) => "",
                    Storage::Folder(_) => ": a folder keeps only the current one",
                };
                format!("the topic {name} has no earlier version{keeps}")
            })?))
        }
    }
}

/// Returns the topics before and after the rollback.
///
/// # Errors
/// If a restored topic is invalid, for example because it predates a rule that it violates now.
fn catalogues(restored: &[Restored], secrets: &SecretPolicy) -> anyhow::Result<[Catalogue; 2]> {
    let (mut before, mut after) = (Catalogue::default(), Catalogue::default());
    for Restored { name, before: old, after: new, .. } in restored {
        let old = old.as_ref().and_then(|old| topic_object::read(name, old, secrets).ok());
        old.into_iter().for_each(|topic| before.add_whole_topic(topic));
        let Some(new) = new else { continue };
        let topic = topic_object::read(name, new, secrets);
        let topic = topic.with_context(|| format!("the topic {name} was not restored"))?;
        if let Some((subscription, why)) = topic.unusable().first_key_value() {
            bail!("{name}/{subscription}: {why}: the version has errors and was not restored");
        }
        after.add_whole_topic(topic);
    }
    Ok([before, after])
}
