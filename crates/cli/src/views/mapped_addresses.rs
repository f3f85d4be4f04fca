//! Prints the mapped addresses of references in a deployment.
//!
//! Separate because an address may contain a credential, which must not be shown.

use std::collections::{BTreeMap, BTreeSet};

use delivery::subscription::{display, host_of};
use serde_json::{Map, Value};
use url::Url;

use crate::terminal::output::out;
use crate::terminal::text;

/// Prints the references whose entries change. Returns true if an entry is removed, or a field
/// other than its address changes. Stored subscriptions then keep values of the old entry.
pub(crate) fn print_mappings([old, new]: [&BTreeMap<String, String>; 2]) -> anyhow::Result<bool> {
    let references: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut is_kept = false;
    for reference in references {
        let [old, new] = [old, new].map(|addresses| addresses.get(reference));
        let (mark, address) = match (old, new) {
            (old, new) if old == new => continue,
            (None, new) => ("+", new.map(|new| shown(new))),
            (Some(_), None) => ("-", None),
            (Some(old), Some(new)) => ("~", Some(format!("{} -> {}", shown(old), shown(new)))),
        };
        is_kept |= old.is_some_and(|old| new.is_none_or(|new| besides(old) != besides(new)));
        let address = address.map(|address| format!("    address: {}\n", text::line(&address)));
        out(&format!(
            "{mark} reference {}\n{}",
            text::line(reference),
            address.unwrap_or_default()
        ))?;
    }
    Ok(is_kept)
}

/// Returns the fields of a reference's entry, except its address.
fn besides(entry: &str) -> Map<String, Value> {
    let mut fields: Map<String, Value> = serde_json::from_str(entry).unwrap_or_default();
    fields.remove("url");
    fields
}

/// Formats a reference's entry for people: its address, the kind of authentication, and `tls` if
/// the entry sets TLS options. If the entry has no address field, the reference is the address.
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

/// Formats an address without its path. The path may be a credential, and only a subscription
/// states whether it must be hidden.
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
