//! Prints the output of `dev`: its addresses and the next commands, the log lines of the functions,
//! and the result of reading saved subscription files. The output is text for people, or JSON with
//! one object per line.

use std::collections::BTreeMap;
use std::path::Path;

use adapters::machine::Machine;
use delivery::event::Input;
use delivery::ports::Clock as _;
use delivery::subscription::Subscription;
use delivery::subscription::catalogue::Catalogue;
use delivery::time::moment;
use dialects::{Finding, Severity};
use local::watch::Line;
use serde_json::{Value, json};

use crate::operations::files::print_findings;
use crate::operations::line_words::words;
use crate::operations::place::DEFAULT_AWS_ENDPOINT;
use crate::operations::queue::DeploymentQueue;
use crate::operations::saved_files::Saved;
use crate::operations::shell;
use crate::operations::this_machine::is_here;
use crate::terminal::output::{LineOutput, note, out, out_json, out_rendered};
use crate::terminal::styled::{Part, Screen, Style};
use crate::terminal::text;
use crate::views::log_view;
use crate::views::repeats::{LineDecision, Repeats};

#[derive(Debug)]
pub(crate) struct DevView {
    output: LineOutput,
    screen: Screen,
    /// The address of each destination, by the name of its subscription.
    destinations: BTreeMap<String, String>,
    repeats: Repeats,
}

/// The addresses that `dev` prints when all its servers have started.
#[derive(Debug)]
pub(crate) struct Ready<'a> {
    /// The URL of the ingress.
    pub(crate) ingress: &'a str,
    /// The URL of the events queue.
    pub(crate) queue: &'a str,
    /// The endpoint of SQS, S3 and DynamoDB.
    pub(crate) aws: &'a str,
    /// The path of the folder with dead letters.
    pub(crate) dead_letters: &'a Path,
    /// The location of the subscription files, for people.
    pub(crate) subscriptions: &'a str,
    /// The address of the console; `None` if an option turns it off.
    pub(crate) console: Option<&'a str>,
}

impl DevView {
    /// Creates a view for these subscriptions.
    pub(crate) fn new(output: LineOutput, screen: Screen, catalogue: &Catalogue) -> Self {
        let destinations = destinations(catalogue);
        Self { output, screen, destinations, repeats: Repeats::default() }
    }

    /// Prints the addresses of all servers, and the next commands.
    pub(crate) fn ready(&self, ready: &Ready<'_>, catalogue: &Catalogue) -> anyhow::Result<()> {
        let Ready { ingress, queue, aws, dead_letters, subscriptions, console } = ready;
        let count = catalogue.subscriptions().count();
        match self.output {
            LineOutput::Json => json_line(
                "INFO",
                "dev.ready",
                json!({
                    "ingress": ingress,
                    "events_queue": queue,
                    "aws": aws,
                    "dead_letters": dead_letters.display().to_string(),
                    "subscriptions": count,
                    "console": console,
                }),
            ),
            LineOutput::Text => {
                let (dead_letters, from) = (dead_letters.display(), subscriptions);
                let count = text::counted(count as u64, "subscription");
                let console =
                    console.map_or_else(String::new, |console| format!("console: {console}\n"));
                out(&format!(
                    "ready: publish to {ingress}/topics/{{namespace}}/{{topic}} or to the queue \
                     {queue}; SQS, S3 and DynamoDB on {aws}; dead letters in \
                     {dead_letters}\n{console}{count} from {from}, reloaded after each save\n{}",
                    next(queue, catalogue)
                ))
            }
        }
    }

    /// Prints a log line of the functions, unless other lines already report its information. With
    /// JSON output, prints nothing, because the functions already log to standard output.
    pub(crate) fn line(&mut self, line: &Line) -> anyhow::Result<()> {
        if self.output == LineOutput::Json {
            return Ok(());
        }
        let is_ours =
            matches!(line.name.as_str(), "subscriptions.broken" | "subscriptions.missing");
        // `dev` itself prints the result of each save.
        if is_ours {
            return Ok(());
        }
        let subscription = line.field("subscription");
        let destination = self.destinations.get(subscription);
        let Some(parts) = log_view::parts(line, destination.map(String::as_str)) else {
            return Ok(());
        };
        let fold = words(line).and_then(|words| words.fold(subscription));
        match self.repeats.next(fold, line.at_ms) {
            LineDecision::Folded => Ok(()),
            LineDecision::Shown { folded: 0 } => self.parts(line.at_ms, parts),
            LineDecision::Shown { folded } => {
                let lines = text::counted(folded, "more line");
                self.parts(
                    line.at_ms,
                    vec![Part::new(Style::Dim, format!("… {lines} like the last one"))],
                )?;
                self.parts(line.at_ms, parts)
            }
        }
    }

    /// Prints the result of reading a saved file.
    pub(crate) fn saved(&mut self, saved: &Saved) -> anyhow::Result<()> {
        match (saved, self.output) {
            (Saved::Valid { reading, changed }, output) => {
                let (catalogue, findings) = (&reading.catalogue, &reading.findings);
                self.destinations = destinations(catalogue);
                let count = catalogue.subscriptions().count();
                match output {
                    LineOutput::Json => {
                        let fields = json!({
                            "subscriptions": count,
                            "changed": changed,
                            "findings": findings_json(findings),
                        });
                        json_line("INFO", "dev.reloaded", fields)
                    }
                    LineOutput::Text => {
                        print_findings(findings);
                        let count = text::counted(count as u64, "subscription");
                        self.now(Style::Good, format!("reloaded: {count}, {changed} changed"))
                    }
                }
            }
            (Saved::Broken(findings), LineOutput::Json) => {
                json_line("ERROR", "dev.broken", json!({ "findings": findings_json(findings) }))
            }
            (Saved::Broken(findings), LineOutput::Text) => {
                print_findings(findings);
                let is_error = |finding: &&Finding| finding.severity == Severity::Error;
                let errors = findings.iter().filter(is_error).count();
                let errors = text::counted(errors as u64, "error");
                let text = format!("not reloaded: {errors}; the previous version stays in use");
                self.now(Style::Bad, text)
            }
            (Saved::Unreadable(problem), LineOutput::Json) => {
                json_line("ERROR", "dev.broken", json!({ "problem": problem }))
            }
            (Saved::Unreadable(problem), LineOutput::Text) => {
                let text = format!("not reloaded: {problem}; the previous version stays in use");
                self.now(Style::Bad, text)
            }
        }
    }

    /// Prints warnings about subscriptions to which this machine does not deliver. `dev` continues,
    /// because the other subscriptions work.
    pub(crate) fn warnings(&self, event: &str, findings: &[Finding]) -> anyhow::Result<()> {
        match self.output {
            LineOutput::Json if !findings.is_empty() => {
                let fields = json!({ "findings": findings_json(findings) });
                json_line("WARN", event, fields)
            }
            LineOutput::Json => Ok(()),
            LineOutput::Text => {
                print_findings(findings);
                Ok(())
            }
        }
    }

    /// Prints that the subscription files cannot be read at the start. `dev` continues, because the
    /// files can be corrected while it runs.
    pub(crate) fn unreadable(&self, problem: &str) -> anyhow::Result<()> {
        match self.output {
            LineOutput::Json => json_line("ERROR", "dev.broken", json!({ "problem": problem })),
            LineOutput::Text => {
                note(format_args!("{problem}\nrecords wait until the subscriptions can be read"));
                Ok(())
            }
        }
    }

    fn now(&self, style: Style, text: String) -> anyhow::Result<()> {
        self.parts(Machine.now_ms(), vec![Part::new(style, text)])
    }

    fn parts(&self, at_ms: u64, mut parts: Vec<Part>) -> anyhow::Result<()> {
        parts.insert(0, Part::new(Style::Dim, text::time_of_day(at_ms)));
        out_rendered(&self.screen.line(&parts))
    }
}

/// Returns the address of each destination by subscription, without the scheme and without
/// credentials.
fn destinations(catalogue: &Catalogue) -> BTreeMap<String, String> {
    let address = |subscription: &Subscription| {
        let shown = subscription.destination.display();
        shown.split_once("://").map_or(shown.clone(), |(_, rest)| rest.to_owned())
    };
    let all = catalogue.subscriptions();
    all.map(|subscription| (subscription.name.to_string(), address(subscription))).collect()
}

/// Returns the commands that cause a first delivery. One command publishes an event. If a
/// subscription sends to this machine, another command starts a receiver.
fn next(queue: &str, catalogue: &Catalogue) -> String {
    let Some(first) = catalogue.subscriptions().next() else {
        return "next: add a subscription to the file, as in examples/native.yaml\n".to_owned();
    };
    let mut lines = "next, in other terminals:\n".to_owned();
    let local =
        catalogue.subscriptions().find(|subscription| is_here(&subscription.destination.url));
    if let Some(port) =
        local.and_then(|subscription| subscription.destination.url.port_or_known_default())
    {
        lines.push_str(&format!("  lastmile subscriber --port {port}\n"));
    }
    let topic = &local.unwrap_or(first).name.topic;
    let kind = match catalogue.topic(topic).map_or(Input::Auto, |topic| topic.settings.input) {
        Input::EventGrid => "eventgrid",
        Input::Custom | Input::Opaque => "json",
        Input::Auto
        | Input::CloudEvents
        | Input::Sns
        | Input::SnsWhole
        | Input::EventBridge
        | Input::S3 => "cloudevents",
    };
    let topic = topic.to_string();
    let mut publish = vec!["lastmile", "publish"];
    let is_default = queue == DeploymentQueue::Events.url_at(DEFAULT_AWS_ENDPOINT);
    publish.extend(if is_default { vec![] } else { vec!["--queue-url", queue] });
    publish.extend(["--topic", &topic, "--sample", kind]);
    lines.push_str(&format!("  {}\n", shell::command(&publish)));
    lines
}

/// Prints a line of `dev` itself, formatted like the functions' log lines.
fn json_line(level: &str, message: &str, fields: Value) -> anyhow::Result<()> {
    let timestamp = moment::rfc3339(Machine.now_ms());
    let mut line = json!({ "timestamp": timestamp, "level": level, "message": message });
    if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
        line.extend(fields);
    }
    out_json(&line.to_string())
}

fn findings_json(findings: &[Finding]) -> Vec<Value> {
    let json = |finding: &Finding| {
        json!({
            "severity": finding.severity.as_str(),
            "file": finding.file,
            "line": finding.line,
            "column": finding.column,
            "field": finding.field,
            "message": finding.message,
            "help": finding.help,
        })
    };
    findings.iter().map(json).collect()
}

#[cfg(test)]
mod tests {
    use dialects::Source;

    use super::*;

    fn catalogue(input: &str, url: &str) -> Catalogue {
        let text = format!(
            "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: n, name: t}}\nspec: {{input: {input}}}\n\
             ---\napiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: n, topic: t, name: a}}\n\
             spec: {{destination: {{url: \"{url}\"}}}}\n"
        );
        dialects::read(&[Source { name: "s", text: &text }]).catalogue
    }

    #[test]
    fn the_next_command_fits_the_topic_the_port_and_the_queue() {
        let other = "http://127.0.0.1:5000/000000000000/events";
        for (input, url, queue, commands) in [
            (
                "auto",
                "http://127.0.0.1:9180/in",
                "http://127.0.0.1:4566/000000000000/events",
                "  lastmile subscriber --port 9180\n  lastmile publish --topic n/t --sample cloudevents\n",
            ),
            (
                "eventgrid",
                "https://a.example.com/",
                other,
                "  lastmile publish --queue-url http://127.0.0.1:5000/000000000000/events --topic n/t --sample eventgrid\n",
            ),
        ] {
            let shown = next(queue, &catalogue(input, url));
            assert_eq!(shown, format!("next, in other terminals:\n{commands}"));
        }
        assert!(next(other, &Catalogue::default()).contains("add a subscription"));
        let shown = next("http://h/a;b", &catalogue("auto", "https://a.example.com/"));
        assert!(
            shown.contains("publish --queue-url 'http://h/a;b' --topic n/t --sample"),
            "{shown}"
        );
    }

    #[test]
    fn destinations_are_shown_without_credentials() {
        let catalogue = catalogue("auto", "https://user:word@a.example.com:8443/in?code=secret");
        assert_eq!(destinations(&catalogue)["n/t/a"], "a.example.com:8443/in");
    }
}
