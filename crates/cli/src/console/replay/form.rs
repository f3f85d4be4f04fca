//! Parses the form of the page that starts a replay.

use adapters::machine::Machine;
use axum::http::StatusCode;
use deadletters::Rate;
use deadletters::filter::Filter;
use deadletters::ledger::is_job_name;
use deadletters::replay::job_name;
use deadletters::replay::sender::ReplayTarget;
use delivery::address::http_url;
use delivery::ports::Clock as _;

use crate::console::letters::fingerprint::FINGERPRINT;
use crate::console::letters::list::PICKED;
use crate::console::shell::error::PageError;
use crate::console::shell::guard::TOKEN;
use crate::console::shell::query::{InvalidField, LIST, Query, href, pairs, value};
use crate::operations::shell;

/// The names of the form fields that are not filters, on the page that starts a replay.
const FIELDS: [&str; 9] =
    ["to", "to_topic", "to_url", "rate", "note", FINGERPRINT, "job", PICKED, TOKEN];

/// The form that starts a replay, from the query of a URL or the body of a request.
pub(super) struct ReplayForm {
    pub(super) query: Query,
    pub(super) filter: Filter,
    /// The fields that are not filters, with the values that the user has entered.
    fields: Vec<(String, String)>,
    /// The parsed target and rate, or the first field that is invalid.
    pub(super) target: Result<(ReplayTarget, Option<Rate>), InvalidField>,
}

impl ReplayForm {
    pub(super) fn read(form: &[u8]) -> Result<Self, PageError> {
        let pairs = pairs(form);
        let (query, filter) = Query::read(&pairs, &FIELDS)?;
        if value(&pairs, PICKED).is_some() && query.values("id").is_empty() {
            // Without this check, a form in which nothing is picked would replay all dead letters.
            let why = "Nothing was sent. Select dead letters with the check boxes in the list \
                       first.";
            let error = PageError::new(StatusCode::BAD_REQUEST, "Nothing is selected", why);
            return Err(error.with_link(query.at(LIST), "Back to the list"));
        }
        let target = read_target(&pairs);
        let fields =
            pairs.into_iter().filter(|(name, _)| FIELDS.contains(&name.as_str())).collect();
        Ok(Self { query, filter, fields, target })
    }

    pub(super) fn field(&self, name: &str) -> &str {
        value(&self.fields, name).unwrap_or_default()
    }

    /// Returns the name of the job in the form, or a new name.
    pub(super) fn job(&self) -> Result<String, InvalidField> {
        match self.field("job") {
            "" => Ok(job_name(Machine.now_ms())),
            job if is_job_name(job) => Ok(job.to_owned()),
            job => {
                let why = format!("\"{job}\" is not a valid job name");
                Err(InvalidField::new("job", why))
            }
        }
    }

    /// Formats the target and the rate as options of `lastmile deadletters replay`.
    pub(super) fn options(&self) -> String {
        let target = match self.field("to") {
            "topic" => Some(("to-topic", self.field("to_topic"))),
            "url" => Some(("to-url", self.field("to_url"))),
            _ => None,
        };
        let rate = Some(("rate", self.field("rate"))).filter(|(_, rate)| !rate.is_empty());
        let options = target.into_iter().chain(rate);
        options.map(|(name, value)| format!(" --{name} {}", shell::typed(value))).collect()
    }

    /// Returns a link to the page of this form, with the same values.
    pub(super) fn href(&self) -> String {
        self.href_with(self.query.filters())
    }

    /// Returns a link to the page of this form that includes dead letters in every state.
    pub(super) fn href_of_any_state(&self) -> String {
        let others = self.query.filters().filter(|(name, _)| *name != "state");
        self.href_with(others.chain([("state", "all")]))
    }

    fn href_with<'a>(&'a self, filters: impl Iterator<Item = (&'a str, &'a str)>) -> String {
        // Omit the token, because browsers store URLs in their history. The page sets the other
        // omitted fields again.
        let is_kept = |name: &str| ![TOKEN, PICKED, FINGERPRINT, "job", "note"].contains(&name);
        let kept = self.fields.iter().filter(|(name, value)| is_kept(name) && !value.is_empty());
        href("/replay", filters.chain(kept.map(|(name, value)| (name.as_str(), value.as_str()))))
    }
}

fn read_target(pairs: &[(String, String)]) -> Result<(ReplayTarget, Option<Rate>), InvalidField> {
    let target = match value(pairs, "to").unwrap_or("subscription") {
        "subscription" => ReplayTarget::Subscription,
        "topic" => {
            let topic = value(pairs, "to_topic").unwrap_or_default();
            ReplayTarget::Topic(topic.parse().map_err(|why| InvalidField::new("to_topic", why))?)
        }
        "url" => {
            let text = value(pairs, "to_url").unwrap_or_default();
            let url = http_url(text).map_err(|why| InvalidField::new("to_url", why))?;
            ReplayTarget::Url(url)
        }
        other => {
            let why = format!("\"{other}\" is not valid: expected subscription, topic or url");
            return Err(InvalidField::new("to", why));
        }
    };
    let rate = value(pairs, "rate").map(str::parse).transpose();
    Ok((target, rate.map_err(|why| InvalidField::new("rate", why))?))
}
