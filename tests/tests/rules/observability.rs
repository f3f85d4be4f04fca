//! The logs, metrics and alarms that operators see match the documentation. The tables of
//! `docs/reference/metrics.md` and `logs.md`, the saved queries, the alarms and the dashboard are
//! checked against the code and against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use adapters::metrics::{Dimensions, Metric};
use delivery::delivery::reason::Reason;
use serde_json::{Value, json};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn text(path: &str) -> String {
    let path = Path::new(ROOT).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn docs() -> String {
    ["metrics", "logs"].map(|page| text(&format!("docs/reference/{page}.md"))).concat()
}

/// The cells of the rows of the table with this first column.
fn table(docs: &str, first: &str) -> Vec<Vec<String>> {
    let lines = docs.lines().map(str::trim_start);
    let rows = lines.skip_while(|line| !line.starts_with(&format!("| {first} |")));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

/// The text between backquotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(ToOwned::to_owned).collect()
}

/// Every Rust file of the functions and of the code that they log through.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .expect("a folder of sources")
        .map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// The names of all log lines: the texts `<word>.<words>` at the end of a log macro.
fn lines_of_the_code() -> BTreeSet<String> {
    let folders = [
        "crates/adapters/src",
        "functions/dispatch/src",
        "functions/deadletter/src",
        "functions/ingress/src",
    ];
    let files = folders.iter().flat_map(|folder| sources(&Path::new(ROOT).join(folder)));
    let is_name = |name: &str| {
        let word = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        };
        name.split_once('.').is_some_and(|(subject, event)| word(subject) && word(event))
    };
    let named = |path: PathBuf| {
        let code = fs::read_to_string(path).expect("a source is text");
        let code = code.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
        let ends_a_macro = |(at, name): (usize, &str)| {
            let after = code[at + name.len()..].trim_start_matches('"').trim_start();
            after.starts_with(')').then(|| name.to_owned())
        };
        let starts = code.match_indices('"').map(|(at, _)| at + 1);
        let names = starts.filter_map(|at| Some((at, code[at..].split(['"', ':']).next()?)));
        let logged = names.filter(|(at, name)| is_name(name) && at + name.len() < code.len());
        logged.filter_map(ends_a_macro).collect::<Vec<_>>()
    };
    files.flat_map(named).collect()
}

#[test]
fn every_metric_is_in_the_table_with_its_unit_and_its_dimension_sets() {
    let table = table(&docs(), "metric");
    let documented: Vec<(String, String, Vec<String>)> = table
        .iter()
        .map(|row| (row[0].trim_matches('`').to_owned(), row[1].clone(), quoted(&row[4])))
        .collect();
    let sets = |metric: Metric| {
        let set = |dimensions: &Dimensions| format!("[{}]", dimensions.names().join(", "));
        metric.dimensions().iter().map(set).collect::<Vec<_>>()
    };
    let known: Vec<_> = Metric::ALL
        .iter()
        .map(|metric| (metric.name().to_owned(), metric.unit().to_owned(), sets(*metric)))
        .collect();
    assert_eq!(documented, known);
}

#[test]
fn exactly_the_lines_of_the_log_are_in_the_table() {
    let documented: BTreeSet<String> =
        table(&docs(), "line").iter().flat_map(|row| quoted(&row[0])).collect();
    let known = lines_of_the_code();
    assert!(known.len() > 20 && known.contains("delivery.attempted"), "{known:?}");
    assert_eq!(documented, known);
}

/// Name and text of each file of infra/queries.
fn queries() -> Vec<(String, String)> {
    let folder = Path::new(ROOT).join("infra/queries");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let named = |path: &PathBuf| {
        assert_eq!(
            path.extension().and_then(|extension| extension.to_str()),
            Some("query"),
            "{}",
            path.display()
        );
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        (name, fs::read_to_string(path).expect("a query is text"))
    };
    paths.iter().map(named).collect()
}

/// The properties of the resources of this type in `infra/observability.yaml`.
fn observed(of_type: &str) -> Vec<Value> {
    properties("infra/observability.yaml", of_type)
}

/// The properties of the resources of this type in a template.
fn properties(template: &str, of_type: &str) -> Vec<Value> {
    let template: Value = serde_saphyr::from_str(&text(template)).expect("a template is YAML");
    let resources = template["Resources"].as_object().expect("it has resources").values();
    let found = resources.filter(|resource| resource["Type"] == of_type);
    found.map(|resource| resource["Properties"].clone()).collect()
}

/// A name in the template, without the name of the application in front of it.
fn own_name(name: &Value) -> String {
    let name = name.as_str().and_then(|name| name.strip_prefix("${Application}"));
    name.expect("a name begins with that of the application")[1..].to_owned()
}

#[test]
fn an_alarm_about_dead_letters_destinations_or_errors_has_the_command_that_opens_its_cause() {
    let alarms = observed("AWS::CloudWatch::Alarm");
    let about = [
        "dead-letter",
        "deadletter-errors",
        "dispatch-errors",
        "destinations",
        "errors-logged",
        "first-attempts",
    ];
    let mut found = 0;
    for alarm in &alarms {
        let (name, text) = (own_name(&alarm["AlarmName"]), alarm["AlarmDescription"].as_str());
        if about.iter().any(|about| name.contains(about)) {
            let (_, command) = text.and_then(|text| text.rsplit_once(": lastmile ")).expect(&name);
            assert!(command.contains(" --stack ${Application}"), "{name}: {command}");
            found += 1;
        }
    }
    assert_eq!(found, 10);
}

#[test]
fn every_query_is_in_the_template_and_in_the_table() {
    let queries = queries();
    let saved: Vec<Value> = observed("AWS::Logs::QueryDefinition");
    let logs = json!(["DispatchLogGroupName", "DeadLetterLogGroupName"]);
    assert!(saved.iter().all(|query| query["LogGroupNames"] == logs), "{saved:#?}");
    let text_of = |query: &Value| query["QueryString"].as_str().expect("a text").to_owned();
    let saved: BTreeMap<String, String> =
        saved.iter().map(|query| (own_name(&query["Name"]), text_of(query))).collect();
    assert_eq!(saved, queries.iter().cloned().collect());
    let documented: BTreeSet<String> =
        table(&docs(), "query").iter().flat_map(|row| quoted(&row[0])).collect();
    assert_eq!(documented, queries.into_iter().map(|(name, _)| name).collect());
}

#[test]
fn queries_select_existing_log_lines() {
    let lines = lines_of_the_code();
    for (name, query) in queries() {
        for part in query.split("message = \"").skip(1) {
            let line = part.split('"').next().expect("the rest of it");
            assert!(lines.contains(line), "{name}.query asks for {line}");
        }
    }
}

#[test]
fn every_alarm_is_in_the_table_and_the_dashboard_shows_existing_metrics() {
    let always = properties("template.yaml", "AWS::CloudWatch::Alarm");
    let always: Vec<&Value> = always.iter().map(|alarm| &alarm["AlarmName"]).collect();
    assert_eq!(always, ["${AWS::StackName}-last-resort"]);
    let observed_alarms = observed("AWS::CloudWatch::Alarm");
    let mut known: BTreeSet<String> =
        observed_alarms.iter().map(|alarm| own_name(&alarm["AlarmName"])).collect();
    assert!(known.insert("last-resort".to_owned()), "an alarm is in one template");
    let documented: BTreeSet<String> =
        table(&docs(), "alarm").iter().flat_map(|row| quoted(&row[0])).collect();
    assert_eq!(documented, known);

    let [dashboard] = &observed("AWS::CloudWatch::Dashboard")[..] else { panic!("one dashboard") };
    let body = dashboard["DashboardBody"].as_str().expect("a text");
    let dashboard: Value = serde_json::from_str(body).expect("the dashboard is JSON");
    let widgets = dashboard["widgets"].as_array().expect("widgets");
    let ours = |name: &str| Metric::ALL.iter().any(|metric| metric.name() == name);
    for metric in widgets
        .iter()
        .flat_map(|widget| widget["properties"]["metrics"].as_array().expect("metrics"))
    {
        match (metric[0].as_str(), metric[0]["expression"].as_str()) {
            (Some("${MetricsNamespace}"), _) => {
                assert!(ours(metric[1].as_str().expect("a name")), "{metric}");
            }
            (Some(namespace), _) => {
                assert!(matches!(namespace, "AWS/SQS" | "AWS/Lambda"), "{metric}");
            }
            (None, Some(search)) => {
                let name =
                    search.split("MetricName=\"").nth(1).and_then(|rest| rest.split('"').next());
                assert!(name.is_some_and(ours), "{metric}");
            }
            (None, None) => panic!("{metric} is neither a metric nor a search"),
        }
    }
}

/// The names in a table of a page. A name may be shortened: `…Forbidden` is a name with this
/// ending.
fn named(page: &str, first: &str) -> Vec<String> {
    table(&text(page), first).iter().flat_map(|row| quoted(&row[0])).collect()
}

#[test]
fn operators_are_told_what_to_do_about_each_alarm_and_each_metric() {
    let rows = |page: &str, first: &str| named(page, first).into_iter().collect::<BTreeSet<_>>();
    let page = "docs/operate/watch.md";
    assert_eq!(rows(page, "alarm"), rows("docs/reference/metrics.md", "alarm"));
    let known: BTreeSet<String> = Metric::ALL.iter().map(|metric| metric.name()).collect();
    assert_eq!(rows(page, "metric"), known);
}

#[test]
fn operators_are_told_what_to_do_about_each_reason() {
    let documented = named("docs/reference/reasons.md", "reason");
    let means = |reason: &str, name: &str| match reason.strip_prefix('…') {
        Some(end) => name.strip_prefix("UndeliverableDueTo") == Some(end),
        None => reason == name,
    };
    let mut names: Vec<String> = Reason::NAMED.iter().map(ToString::to_string).collect();
    names.push("UndeliverableDueToHttpStatus<code>".to_owned());
    for name in &names {
        let rows = documented.iter().filter(|reason| means(reason, name)).count();
        assert_eq!(rows, 1, "{name} in docs/reference/reasons.md");
    }
    assert_eq!(documented.len(), names.len(), "a reason that does not exist: {documented:?}");
}
