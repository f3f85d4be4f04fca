//! What belongs to a deployment and lives in its catalogue, as it counts for files that are applied there:
//! mappings of references, a policy of secrets, and topics that others describe.
//!
//! Separate from the comparison, which is about entries: here files are read by it, and what they say is held
//! against it. Dispatch enforces the policy again: whoever writes objects without this program is not checked here.

use std::collections::{BTreeMap, BTreeSet};

use adapters::live_catalogue::entries::{DEPLOYMENT, is_owned_by, settings_of};
use adapters::live_catalogue::mappings::{Mapped, mappings_of};
use adapters::live_catalogue::objects::CatalogueObjects;
use adapters::subscriptions::Location;
use anyhow::{Context as _, bail};
use catalogue::{Namespace, NodeCache};
use delivery::subscription::catalogue::Catalogue;
use delivery::subscription::name::SubscriptionName;
use delivery::subscription::{display, host_of};
use dialects::Deployment;
use serde_json::{Map, Value};
use url::Url;

use crate::comparison::{NODES_KEPT_BYTES, newest_entries};
use crate::output::out;
use crate::store;
use crate::text;

/// What a deployment has, for the files of one owner.
#[derive(Default)]
pub(crate) struct DeploymentEntries {
    owner: String,
    mappings: BTreeMap<String, Mapped>,
    /// As files are read by it.
    pub(crate) for_files: Deployment,
}

impl DeploymentEntries {
    /// What the catalogue at this address has; nothing where a file is. `prune`: what is this owner's own does
    /// not count, since it stays only if the files have it.
    pub(crate) async fn at(location: &Location, owner: &str, prune: bool) -> anyhow::Result<Self> {
        if !location.is_catalogue() {
            return Ok(Self::default());
        }
        let objects = CatalogueObjects::below(&store::object(location).await);
        let nodes = NodeCache::new(NODES_KEPT_BYTES);
        Self::of(&Namespace::new(&objects, &nodes, DEPLOYMENT), owner, prune)
            .await
            .context("what belongs to the deployment cannot be read")
    }

    async fn of(
        namespace: &Namespace<'_, CatalogueObjects>,
        owner: &str,
        prune: bool,
    ) -> anyhow::Result<Self> {
        let (_, mut entries) = newest_entries(namespace).await?;
        entries.retain(|entry| !(prune && is_owned_by(entry, owner)));
        let secrets = settings_of(&entries).map_err(anyhow::Error::msg)?.secrets;
        let mappings = mappings_of(&entries).map_err(anyhow::Error::msg)?;
        let address = |(of, mapped): (&String, &Mapped)| (of.clone(), mapped.address.clone());
        let destinations = mappings.iter().map(address).collect();
        let for_files = Deployment { destinations, secrets };
        Ok(Self { owner: owner.to_owned(), mappings, for_files })
    }

    /// The mappings of files that are their owner's: without those that others have as well.
    ///
    /// # Errors
    /// When another owner maps a reference elsewhere; names both.
    pub(crate) fn own(
        &self,
        mut mappings: BTreeMap<String, String>,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        for (reference, Mapped { address, owner }) in &self.mappings {
            let is_foreign = *owner != self.owner;
            if !is_foreign || !mappings.contains_key(reference) {
                continue;
            }
            let of_files = mappings.remove(reference);
            if of_files.as_ref() != Some(address) {
                bail!(
                    "{} is mapped to {} by {owner:?}, and elsewhere by these files: change it with --owner {owner:?}, or \
                     remove it from the files",
                    text::line(reference),
                    shown(address)
                );
            }
        }
        Ok(mappings)
    }
}

/// What is wrong with subscriptions beside their topics and the policy of secrets, whoever described them: of
/// those that files put there all, of others what was not wrong before.
pub(crate) fn new_problems(
    before: &Catalogue,
    after: &Catalogue,
    put: &BTreeSet<&SubscriptionName>,
) -> Vec<String> {
    let known = problems(before);
    let is_new =
        |problem: &(SubscriptionName, String)| put.contains(&problem.0) || !known.contains(problem);
    let unread = put.iter().filter(|name| after.subscription(name).is_none());
    let unread = unread.map(|name| {
        let topic = &name.topic;
        let what = format!("its topic cannot be read: see lastmile subscriptions list {topic}");
        ((*name).clone(), what)
    });
    let found = problems(after).into_iter().filter(is_new).chain(unread);
    found.map(|(name, problem)| text::line(&format!("error: {name}: {problem}"))).collect()
}

fn problems(catalogue: &Catalogue) -> BTreeSet<(SubscriptionName, String)> {
    let secrets = &catalogue.settings().secrets;
    let of_subscriptions = catalogue.subscriptions().flat_map(|subscription| {
        let name = &subscription.name;
        let topic = catalogue.topic(&name.topic);
        let problems = topic.map(|topic| delivery::native::problems(subscription, topic, secrets));
        problems.unwrap_or_default().into_iter().map(|problem| (name.clone(), problem))
    });
    of_subscriptions.collect()
}

/// Prints which references are mapped elsewhere; returns whether a mapping changes that was there before.
pub(crate) fn print_mappings([old, new]: [&BTreeMap<String, Mapped>; 2]) -> anyhow::Result<bool> {
    let references: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut changes = false;
    for reference in references {
        let [old, new] = [old, new].map(|of| of.get(reference).map(|mapped| &mapped.address));
        let (mark, address) = match (old, new) {
            (old, new) if old == new => continue,
            (None, new) => ("+", new.map(|new| shown(new))),
            (Some(_), None) => ("-", None),
            (Some(old), Some(new)) => ("~", Some(format!("{} -> {}", shown(old), shown(new)))),
        };
        changes |= old.is_some();
        let address = address.map(|address| format!("    address: {}\n", text::line(&address)));
        out(&format!(
            "{mark} reference {}\n{}",
            text::line(reference),
            address.unwrap_or_default()
        ))?;
    }
    Ok(changes)
}

/// An entry for people: its address, and what else it has. One without an address has its reference as that.
fn shown(entry: &str) -> String {
    let Ok(entry) = serde_json::from_str::<Map<String, Value>>(entry) else {
        return shown_address(entry);
    };
    let address = entry.get("url").and_then(Value::as_str);
    let kinds = entry.get("auth").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let auth = kinds.map(|kind| format!(", auth {kind}"));
    let tls = entry.contains_key("tls").then(|| ", tls".to_owned());
    let more: String = auth.chain(tls).collect();
    format!("{}{more}", address.map_or("the reference".to_owned(), shown_address))
}

/// An address for people. The path of an endpoint may be a credential, which only a subscription says.
fn shown_address(address: &str) -> String {
    match Url::parse(address) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => {
            let is_all = matches!(url.path(), "" | "/") && url.query().is_none();
            format!("{}://{}{}", url.scheme(), host_of(&url), if is_all { "/" } else { "/…" })
        }
        Ok(url) => display(&url),
        Err(_) => "no address".to_owned(),
    }
}
