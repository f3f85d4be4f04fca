//! Detects the family of a document from its outermost fields.
//!
//! Separate because only this module lists all families, and each has a module of its own. A
//! document of no family is reported or counted here. An unknown field is an error in our own
//! format, and a warning in foreign formats.

use super::ignored::Ignored;
use super::{eventbridge, eventgrid, foreign};
use delivery::document::findings::{Message, quoted};
use delivery::document::hint::hint;
use delivery::document::reader::Cursor;
use delivery::native::API_VERSION;

/// Values of `kind` in our own format.
const KINDS: [&str; 5] = ["Topic", "Subscription", "Destinations", "Notifications", "SecretPolicy"];

/// The documents of all files, by family and kind.
#[derive(Default)]
pub(super) struct Families<'a> {
    pub(super) topics: Vec<Cursor<'a>>,
    pub(super) subscriptions: Vec<Cursor<'a>>,
    pub(super) knative: Vec<Cursor<'a>>,
    /// Event Grid resources, and templates that contain such resources.
    pub(super) event_grid: Vec<Cursor<'a>>,
    /// Rules, targets, API destinations and connections of EventBridge, and templates of
    /// CloudFormation.
    pub(super) event_bridge: Vec<Cursor<'a>>,
    /// `Destinations` documents, which apply to every family.
    pub(super) destinations: Vec<Cursor<'a>>,
    /// `Notifications` documents, of which a deployment has at most one.
    pub(super) notifications: Vec<Cursor<'a>>,
    /// `SecretPolicy` documents, which apply to every family.
    pub(super) secret_policies: Vec<Cursor<'a>>,
}

/// Sorts documents into families. A document of no family is counted if it is a Kubernetes object,
/// and reported otherwise.
pub(super) fn sort<'a>(
    documents: impl Iterator<Item = Cursor<'a>>,
    ignored: &mut Ignored<'a>,
) -> Families<'a> {
    let mut families = Families::default();
    for document in documents.flat_map(items) {
        if !document.is_mapping() {
            document.error(
                Message::new("a document must be a mapping")
                    .help(format!("begin with apiVersion: {API_VERSION}")),
            );
            continue;
        }
        let api_version = document.text_at("apiVersion");
        if api_version == API_VERSION {
            sort_native(&mut families, document);
        } else if is_event_grid(&document) {
            families.event_grid.push(document.lenient());
        } else if eventbridge::is_event_bridge(&document) {
            families.event_bridge.push(document.lenient());
        } else if is_knative(api_version, &document) {
            families.knative.push(document.lenient());
        } else if let Some(message) = not_deployed(api_version, &document) {
            document.warn(message);
        } else if is_of_kubernetes(api_version, &document) {
            ignored.count(&document);
        } else if !eventbridge::report_list(&document) {
            report_unknown(&document, api_version);
        }
    }
    families
}

/// Returns the items of a Kubernetes list, as `kubectl get -o yaml` prints it, or of a list of
/// Azure's REST API, including nested lists. Returns any other document unchanged. The recursion
/// ends because the nesting of documents is limited.
fn items(document: Cursor<'_>) -> Vec<Cursor<'_>> {
    let is_list = document.text_at("kind").ends_with("List");
    let items = document.peek("items").filter(|items| is_list && items.is_list());
    let of_azure = document.peek("value").filter(Cursor::is_list);
    let of_azure = of_azure.filter(|_| document.peek("apiVersion").is_none());
    if of_azure.is_some() && !document.text_at("nextLink").is_empty() {
        let message = "the list is incomplete: it continues at its nextLink, which is not read";
        document.warn(Message::new(message).help("add a file with the rest of the list"));
    }
    match items.or(of_azure).and_then(|items| items.list()) {
        Some(items) => items.into_iter().flat_map(self::items).collect(),
        None => vec![document],
    }
}

fn sort_native<'a>(families: &mut Families<'a>, document: Cursor<'a>) {
    let Some(kind) = document.peek("kind") else {
        document.error(
            Message::new("kind is missing").help(format!("expected one of {}", KINDS.join(", "))),
        );
        return;
    };
    match kind.text() {
        Some("Topic") => families.topics.push(document),
        Some("Subscription") => families.subscriptions.push(document),
        Some("Destinations") => families.destinations.push(document),
        Some("Notifications") => families.notifications.push(document),
        Some("SecretPolicy") => families.secret_policies.push(document),
        Some(other) => {
            let message = format!("{API_VERSION} has no kind {}", quoted(other));
            kind.error(Message::new(message).help(hint(other, &KINDS)));
        }
        None => {}
    }
}

/// True if the document is an object of Knative, or of a compatible Google Cloud broker or channel.
/// Also true for a ConfigMap, which may configure brokers and channels, and for any object with a
/// sink, which is an event source.
fn is_knative(api_version: &str, document: &Cursor<'_>) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let named = group == "knative.dev" || group.ends_with(".knative.dev");
    let google =
        ["messaging.cloud.google.com", "eventing.cloud.google.com", "events.cloud.google.com"]
            .contains(&group);
    let source = !api_version.is_empty()
        && !group.ends_with("lastmile.dev")
        && document.peek("spec.sink").is_some_and(|sink| sink.is_mapping());
    let config_map = api_version == "v1" && document.text_at("kind") == "ConfigMap";
    named || google || source || config_map
}

/// True if the document is an Event Grid resource, or a template with such resources.
fn is_event_grid(document: &Cursor<'_>) -> bool {
    let holds =
        |field: &str, part: &str| document.text_at(field).to_ascii_lowercase().contains(part);
    holds("type", "microsoft.eventgrid/")
        || holds("type", "/eventsubscriptions")
        || holds("id", "/eventsubscriptions/")
        || eventgrid::is_template(document)
        || eventgrid::has_destination(document)
}

/// Returns the warning for a document that has nothing to deploy, but describes how other files are
/// deployed.
fn not_deployed(api_version: &str, document: &Cursor<'_>) -> Option<Message> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_named = ["kustomization", "Kustomization"].contains(&document.file_stem());
    if group == "kustomize.config.k8s.io" || is_named && api_version.is_empty() {
        let message = "the kustomization is not applied: the other files are read unchanged";
        return Some(Message::new(message).help("check the output of kustomize build instead"));
    }
    let schema = document.text_at("$schema").to_ascii_lowercase();
    schema.contains("deploymentparameters").then(|| {
        let message =
            "the parameters of a deployment have no effect: template expressions are not evaluated";
        Message::new(message).help(foreign::AZURE)
    })
}

/// True if the document is a Kubernetes object that is not in our own format, such as a service.
/// The caller has already handled the objects of every family.
fn is_of_kubernetes(api_version: &str, document: &Cursor<'_>) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let has = |field| document.peek(field).is_some();
    !api_version.is_empty() && !group.ends_with("lastmile.dev") && has("kind") && has("metadata")
}

fn report_unknown(document: &Cursor<'_>, api_version: &str) {
    match document.peek("apiVersion") {
        Some(version) if !api_version.is_empty() => {
            let message = format!("{} is not a known apiVersion", quoted(api_version));
            version.error(Message::new(message).help(hint(api_version, &[API_VERSION])));
        }
        Some(version) => version.error(
            Message::new("apiVersion must be a string").help(format!("apiVersion: {API_VERSION}")),
        ),
        None => document.error(
            Message::new("apiVersion is missing").help(format!("apiVersion: {API_VERSION}")),
        ),
    }
}
