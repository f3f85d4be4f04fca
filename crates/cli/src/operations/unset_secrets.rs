//! Finds unset environment variables on this machine that subscriptions use as secrets.
//!
//! Separate from sending, which would find an unset variable only at the first event. When `dev` or
//! `try` starts, the user can still set the variable. Secrets in AWS stores are not checked,
//! because only a Lambda extension reads them.

use std::collections::BTreeSet;

use delivery::subscription::Subscription;
use delivery::subscription::secret::SecretName;
use dialects::{Finding, NamedSecret, Reading, Severity};

use crate::operations::locations::location;
use crate::operations::writable::Problem;

/// Returns findings about unset or empty variables, one for each place that names a variable.
pub(crate) fn unset_secrets<'a>(
    reading: &Reading,
    subscriptions: impl IntoIterator<Item = &'a Subscription>,
    severity: Severity,
    variable: impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for subscription in subscriptions {
        for secret in subscription.destination.secrets() {
            let SecretName::Environment(name) = secret else { continue };
            let Some(problem) = problem(name, variable(name).as_deref(), severity) else {
                continue;
            };
            let finding = at(reading, subscription, secret, problem);
            if seen.insert((finding.file.clone(), finding.line, finding.column, name.clone())) {
                findings.push(finding);
            }
        }
    }
    findings
}

/// Returns warnings about variables that any subscription names, but that are unset or empty in the
/// environment of this process.
pub(crate) fn all_unset_here(reading: &Reading) -> Vec<Finding> {
    let all = reading.catalogue.subscriptions().map(AsRef::as_ref);
    unset_secrets(reading, all, Severity::Warning, |name| std::env::var(name).ok())
}

/// Returns the problem with a variable, and the advice; `None` if the variable has a value.
fn problem(name: &str, value: Option<&str>, severity: Severity) -> Option<Problem> {
    let state = match value {
        None => "not set",
        Some(value) if value.trim().is_empty() => "empty",
        Some(_) => return None,
    };
    let message = format!(
        "the environment variable {name} is {state}, so requests that require it are not sent"
    );
    Some(Problem {
        severity,
        message,
        help: Some(format!("export {name}=…, and run the command again")),
    })
}

/// Creates a finding at the place where a document names the secret. If there is no document, for
/// example because a deployment was read, the finding names the subscription instead of a file.
fn at(
    reading: &Reading,
    subscription: &Subscription,
    secret: &SecretName,
    problem: Problem,
) -> Finding {
    let is_same =
        |named: &&NamedSecret| named.subscription == subscription.name && named.secret == *secret;
    let place = reading.secrets.iter().find(is_same);
    match place.and_then(|named| Some((location(&named.at)?, &named.field))) {
        Some(((file, line, column), field)) => {
            Finding { line, column, ..problem.in_file(file, field) }
        }
        None => problem.in_file(subscription.name.to_string(), ""),
    }
}

#[cfg(test)]
mod tests {
    use dialects::{Source, read};

    use super::*;

    #[test]
    fn each_missing_or_empty_variable_is_reported_once_where_it_is_named() {
        let document = |name: &str, secrets: &str| {
            format!(
                "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: n, topic: t, name: {name}}}\n\
                 spec:\n  destination: {{url: 'https://a.example.com/', signing: {{secrets: [{secrets}]}}}}\n---\n"
            )
        };
        let topic = "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {namespace: n, name: u}\n\
                     spec: {delivery: {destination: {headers: [{name: a, secret: 'env:MISSING'}]}}}\n---\n";
        let text = format!(
            "{}{}{topic}{}",
            document("a", "'env:SET', 'env:EMPTY'"),
            document("b", "'ssm:MISSING', 'env:MISSING'"),
            document("c", "'env:SET'").replace("topic: t", "topic: u"),
        ) + &document("d", "'env:SET'").replace("topic: t", "topic: u");
        let reading = read(&[Source { name: "f", text: &text }]);
        let variable = |name: &str| match name {
            "SET" => Some("x".to_owned()),
            "EMPTY" => Some(" ".to_owned()),
            _ => None,
        };
        let all = reading.catalogue.subscriptions().map(AsRef::as_ref);
        let found = unset_secrets(&reading, all, Severity::Warning, variable);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        let rest = ", so requests that require it are not sent; export";
        assert_eq!(
            found,
            [
                format!(
                    "f:5:79: warning: spec.destination.signing.secrets[1]: the environment \
                     variable EMPTY is empty{rest} EMPTY=…, and run the command again"
                ),
                format!(
                    "f:11:83: warning: spec.destination.signing.secrets[1]: the environment \
                     variable MISSING is not set{rest} MISSING=…, and run the command again"
                ),
                format!(
                    "f:16:61: warning: spec.delivery.destination.headers[0].secret: the \
                     environment variable MISSING is not set{rest} MISSING=…, and run the command \
                     again"
                ),
            ]
        );
    }
}
