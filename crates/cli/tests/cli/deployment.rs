//! What belongs to a whole deployment: a policy of secrets, mappings of references, and topics, as they bind what other
//! owners apply.

use std::path::Path;

use crate::deployments::{object, try_apply, uri};
use crate::programs::run;

const POLICY: &str = "apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {secrets: [{name: 'env:A', hosts: [HOST]}]}\n";
const TRIGGER: &str = "apiVersion: eventing.knative.dev/v1\nkind: Trigger\nmetadata: {name: billing, namespace: shop}\n\
    spec: {broker: orders, subscriber: {ref: {apiVersion: serving.knative.dev/v1, kind: Service, name: billing}}}\n";

fn policy(host: &str) -> String {
    POLICY.replace("HOST", host)
}

fn subscription(name: &str, destination: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: 'https://{name}.example.com/in'{destination}}}}}\n"
    )
}

/// One that sends the secret `env:A`.
fn sending(name: &str) -> String {
    subscription(name, ", signing: {secrets: ['env:A']}")
}

fn topic(spec: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Topic\nmetadata: {{namespace: shop, name: orders}}\nspec: {{{spec}}}\n"
    )
}

fn mapped(address: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Destinations\nspec:\n  serving.knative.dev/v1/Service/shop/billing: {address}\n"
    )
}

/// Applies these documents with these options; returns what was printed and the exit code.
fn change(
    folder: &Path,
    options: &[&str],
    owner: &str,
    documents: &[String],
) -> (String, Option<i32>) {
    try_apply(folder, documents, &[options, &["--owner", owner]].concat())
}

const APPLY: &[&str] = &["--yes"];
const PRUNE: &[&str] = &["--yes", "--allow-empty", "--prune"];
const POLICY_ONLY: &[&str] = &["--yes", "--allow-empty"];

#[test]
fn a_policy_of_one_owner_binds_what_every_other_one_applies_until_it_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let change = |options: &[&str], owner: &str, documents: &[String]| {
        change(folder.path(), options, owner, documents)
    };
    let (printed, code) = change(POLICY_ONLY, "platform", &[policy("a.example.com")]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("+ secret env:A\n    hosts: a.example.com"), "{printed}");
    let (printed, code) = change(APPLY, "team-b", &[sending("b")]);
    assert_eq!(code, Some(1), "{printed}");
    // Where it is written, as if the policy were in the files.
    assert!(
        printed.contains("applied.yaml:4:") && printed.contains("the secret \"env:A\" may not be sent to \"b.example.com\"; SecretPolicy allows a.example.com"),
        "{printed}"
    );
    let (printed, code) = change(APPLY, "team-b", &[sending("a")]);
    assert_eq!(code, Some(0), "{printed}");
    // What files say themselves is added.
    let (printed, code) = change(APPLY, "team-c", &[sending("c"), policy("c.example.com")]);
    assert_eq!(code, Some(0), "{printed}");

    let (printed, code) = change(PRUNE, "platform", &[]);
    assert_eq!(code, Some(1), "the other owner's rule does not allow it: {printed}");
    assert!(printed.contains("error: shop/orders/a: the secret"), "{printed}");
    let (printed, code) = change(PRUNE, "team-c", &[]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("~ secret env:A\n    hosts: "), "{printed}");
    let (printed, code) = change(PRUNE, "platform", &[]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("- secret env:A"), "{printed}");
    let (printed, code) = change(APPLY, "team-b", &[sending("b")]);
    assert_eq!(code, Some(0), "{printed}");
}

#[test]
fn a_policy_that_subscriptions_of_others_violate_is_refused_with_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let change = |options: &[&str], owner: &str, documents: &[String]| {
        change(folder.path(), options, owner, documents)
    };
    assert_eq!(change(APPLY, "team-b", &[sending("b"), subscription("c", "")]).1, Some(0));
    let (printed, code) = change(POLICY_ONLY, "platform", &[policy("a.example.com")]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("error: shop/orders/b: the secret \"env:A\" may not be sent to \"b.example.com\"; SecretPolicy allows a.example.com")
            && !printed.contains("shop/orders/c"),
        "{printed}"
    );
    let nothing = "apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {secrets: []}\n";
    let (printed, code) = change(POLICY_ONLY, "platform", &[nothing.to_owned()]);
    assert_eq!(code, Some(1), "{printed}");
    let (printed, code) = change(POLICY_ONLY, "platform", &[policy("'*.example.com'")]);
    assert_eq!(code, Some(0), "{printed}");
    // A host that an owner takes back counts no longer for its own files either.
    let narrower = [policy("a.example.com"), sending("other")];
    let (printed, code) = change(APPLY, "platform", &narrower);
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("shop/orders/b") && printed.contains("shop/orders/other"),
        "{printed}"
    );
}

#[test]
fn settings_that_cannot_be_read_let_nothing_be_applied() {
    let folder = tempfile::tempdir().expect("a folder");
    let (printed, code) = change(folder.path(), APPLY, "one", &[subscription("a", "")]);
    assert_eq!(code, Some(0), "{printed}");
    for name in ["_settings.json", "_publishers.json"] {
        let path = object(folder.path(), name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let before = std::fs::read(&path).ok();
        std::fs::write(&path, "damaged").expect("a file");
        let (printed, code) = change(folder.path(), APPLY, "two", &[subscription("b", "")]);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains(&format!("{name} cannot be read: ")), "{printed}");
        match before {
            Some(before) => std::fs::write(path, before).expect("a file"),
            None => std::fs::remove_file(path).expect("it was there"),
        }
    }
}

#[test]
fn publishers_that_cannot_be_used_can_be_repaired_by_their_owner() {
    let folder = tempfile::tempdir().expect("a folder");
    let claims = topic("from: [{bucket: uploads}]");
    let (printed, code) = change(folder.path(), POLICY_ONLY, "one", std::slice::from_ref(&claims));
    assert_eq!(code, Some(0), "{printed}");
    // Somebody writes the same publisher for a second topic by hand.
    let path = object(folder.path(), "_publishers.json");
    let text = std::fs::read_to_string(&path).expect("an object");
    let mut written: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    written["topics"]["shop/others"] = written["topics"]["shop/orders"].clone();
    std::fs::write(&path, written.to_string()).expect("a file");

    let (printed, code) = change(folder.path(), POLICY_ONLY, "two", &[subscription("a", "")]);
    assert_eq!(code, Some(1), "it stays unusable: {printed}");
    let problem = "the settings would not be usable: spec.from[0].bucket: the publisher bucket uploads is defined twice: for \
         shop/orders and for shop/others";
    assert!(printed.contains(problem), "{printed}");
    // The owner keeps one of the two.
    let more = ["--yes", "--allow-empty", "--prune"];
    let (printed, code) = change(folder.path(), &more, "one", &[claims]);
    assert_eq!(code, Some(0), "{printed}");
}

#[test]
fn addresses_of_one_owner_that_cannot_be_read_keep_nobody_else_from_applying() {
    let folder = tempfile::tempdir().expect("a folder");
    let (printed, code) = change(folder.path(), APPLY, "one", &[subscription("a", "")]);
    assert_eq!(code, Some(0), "{printed}");
    let path = object(folder.path(), "_destinations/one.json");
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(&path, "damaged").expect("a file");
    let (printed, code) = change(folder.path(), APPLY, "two", &[subscription("b", "")]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("one is left out"), "{printed}");
}

#[test]
fn references_that_one_owner_maps_are_used_by_all_and_each_mapping_has_one_owner() {
    let folder = tempfile::tempdir().expect("a folder");
    let change = |options: &[&str], owner: &str, documents: &[String]| {
        change(folder.path(), options, owner, documents)
    };
    let trigger = [TRIGGER.to_owned()];
    assert_eq!(change(APPLY, "team-b", &trigger).1, Some(1));
    let first = mapped("https://billing.example.com/in?code=hidden");
    let (printed, code) = change(POLICY_ONLY, "platform", std::slice::from_ref(&first));
    assert_eq!(code, Some(0), "{printed}");
    assert!(
        printed.contains("+ reference serving.knative.dev/v1/Service/shop/billing\n    address: https://billing.example.com/…\n")
            && !printed.contains("hidden"),
        "{printed}"
    );
    let (printed, code) = change(APPLY, "team-b", &trigger);
    assert_eq!(code, Some(0), "{printed}");
    let both = [TRIGGER.to_owned(), mapped("https://evil.example.com/")];
    let (printed, code) = change(APPLY, "team-b", &both);
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("serving.knative.dev/v1/Service/shop/billing is mapped by \"platform\", and elsewhere by these files"),
        "{printed}"
    );
    // Files that say the same are no conflict, and it stays that owner's.
    let (printed, code) = change(APPLY, "team-b", &[TRIGGER.to_owned(), first.clone()]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(!object(folder.path(), "_destinations/team-b.json").exists());
    let uri = uri(folder.path());
    let name = "shop/orders/billing";
    let (printed, code) = run(folder.path(), &["subscriptions", "get", name, "--to", &uri]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("https://billing.example.com/in?code=hidden"), "{printed}");

    let (printed, code) = change(PRUNE, "platform", &[]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("- reference serving.knative.dev"), "{printed}");
    assert!(printed.contains("apply their files again"), "{printed}");
    assert_eq!(change(APPLY, "team-b", &trigger).1, Some(1));
}

#[test]
fn a_new_address_of_a_reference_reaches_the_stored_subscriptions_of_all_owners() {
    let folder = tempfile::tempdir().expect("a folder");
    let change = |options: &[&str], owner: &str, documents: &[String]| {
        change(folder.path(), options, owner, documents)
    };
    let old = "https://billing.example.com/in";
    assert_eq!(change(POLICY_ONLY, "platform", &[mapped(old)]).1, Some(0));
    let trigger = |topic: &str| TRIGGER.replace("broker: orders", &format!("broker: {topic}"));
    assert_eq!(change(APPLY, "team-a", &[trigger("orders")]).1, Some(0));
    assert_eq!(change(APPLY, "team-b", &[trigger("others"), subscription("b", "")]).1, Some(0));
    let new = [mapped("https://new.example.com/in")];
    let stored = |topic: &str| {
        let path = object(folder.path(), &format!("shop/{topic}.json"));
        std::fs::read_to_string(path).expect("an object")
    };
    let before = [stored("orders"), stored("others")];

    let dry_run = ["--dry-run", "--allow-empty"];
    let (printed, code) = change(&dry_run, "platform", &new);
    assert_eq!(code, Some(2), "{printed}");
    for part in [
        "~ subscription shop/orders/billing\n    destination.url: https://billing.example.com/in -> https://new.example.com/in\n",
        "~ subscription shop/others/billing\n    destination.url: https://billing.example.com/in -> ",
        "    address: https://billing.example.com/… -> https://new.example.com/…\n",
        "stored entries that get the new address of a reference, whoever owns them: 2\n",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    assert!(!printed.contains("shop/orders/b\n") && !printed.contains("again"), "{printed}");
    assert_eq!([stored("orders"), stored("others")], before);

    let (printed, code) = change(POLICY_ONLY, "platform", &new);
    assert_eq!(code, Some(0), "{printed}");
    let expected = before.map(|text| text.replace(old, "https://new.example.com/in"));
    assert_eq!([stored("orders"), stored("others")], expected);
    // The files of the others have nothing to change.
    let dry_run = ["--dry-run"];
    let (printed, code) = change(&dry_run, "team-a", &[trigger("orders")]);
    assert_eq!(code, Some(0), "{printed}");
}

#[test]
fn a_new_address_that_a_policy_forbids_a_subscription_of_another_owner_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let change = |options: &[&str], owner: &str, documents: &[String]| {
        change(folder.path(), options, owner, documents)
    };
    let own = [mapped("https://a.example.com/"), policy("a.example.com")];
    assert_eq!(change(POLICY_ONLY, "platform", &own).1, Some(0));
    let signed = sending("a")
        .replace("https://a.example.com/in", "serving.knative.dev/v1/Service/shop/billing");
    let (printed, code) = change(APPLY, "team-b", &[signed]);
    assert_eq!(code, Some(0), "{printed}");
    let (printed, code) = change(POLICY_ONLY, "platform", &[mapped("https://evil.example.com/")]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("error: shop/orders/a: the secret \"env:A\" may not be sent to"),
        "{printed}"
    );
}

#[test]
fn an_entry_of_one_owner_says_for_all_who_is_calling() {
    let folder = tempfile::tempdir().expect("a folder");
    let change = |owner: &str, document: String| {
        change(folder.path(), POLICY_ONLY, owner, std::slice::from_ref(&document))
    };
    let client =
        "tokenUrl: 'https://login.example.com/t?key=hidden', clientId: a, clientSecret: 'env:A'";
    let url = "url: 'https://billing.example.com/in?code=hidden'";
    let (printed, code) =
        change("platform", mapped(&format!("{{{url}, auth: {{oauth2: {{{client}}}}}}}")));
    assert_eq!(code, Some(0), "{printed}");
    let shown = "    address: https://billing.example.com/…, auth oauth2\n";
    assert!(printed.contains(shown) && !printed.contains("hidden"), "{printed}");
    let asking = TRIGGER.replace("subscriber: {", "subscriber: {audience: them, ");
    let (printed, code) = change("team-b", asking);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("destination.auth.oauth2.audience: them"), "{printed}");
    assert!(!printed.contains("requests show no token"), "{printed}");
}

#[test]
fn an_owners_mappings_that_its_files_no_longer_have_are_used_unless_they_are_pruned() {
    let folder = tempfile::tempdir().expect("a folder");
    let change =
        |options: &[&str], documents: &[String]| change(folder.path(), options, "one", documents);
    let mapping = mapped("https://billing.example.com/");
    assert_eq!(change(APPLY, &[TRIGGER.to_owned(), mapping.clone()]).1, Some(0));
    assert_eq!(change(APPLY, &[TRIGGER.to_owned()]).1, Some(0));
    assert_eq!(change(PRUNE, &[TRIGGER.to_owned()]).1, Some(1));
    assert_eq!(change(PRUNE, &[TRIGGER.to_owned(), mapping]).1, Some(0));
}

#[test]
fn a_subscription_suits_the_topic_that_another_owner_describes() {
    let folder = tempfile::tempdir().expect("a folder");
    let change = |options: &[&str], owner: &str, documents: &[String]| {
        change(folder.path(), options, owner, documents)
    };
    let event_grid = subscription("b", ", schema: eventgrid");
    assert_eq!(change(POLICY_ONLY, "platform", &[topic("input: opaque")]).1, Some(0));
    let (printed, code) = change(APPLY, "team-b", std::slice::from_ref(&event_grid));
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("error: shop/orders/b: ") && printed.contains("the topic shop/orders has input opaque; its text cannot be delivered as eventgrid; leave schema out"),
        "{printed}"
    );
    assert_eq!(change(APPLY, "team-b", &[subscription("c", "")]).1, Some(0));

    // And a topic suits the subscriptions of others.
    let (printed, code) = change(APPLY, "platform", &[topic("input: auto, maxReplies: 3")]);
    assert_eq!(code, Some(2), "without a subscription: {printed}");
    let (printed, code) = change(POLICY_ONLY, "platform", &[topic("input: auto, maxReplies: 3")]);
    assert_eq!(code, Some(0), "{printed}");
    assert_eq!(change(APPLY, "team-b", &[event_grid]).1, Some(0));
    for input in ["custom", "cloudevents"] {
        let changed = topic(&format!("input: {input}"));
        let (printed, code) = change(POLICY_ONLY, "platform", &[changed]);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains("error: shop/orders/b: the "), "{printed}");
        assert!(!printed.contains("shop/orders/c"), "{printed}");
    }
    let mapping =
        "input: custom, mapping: {eventType: {default: t}, subject: {default: s}}".to_owned();
    let (printed, code) = change(POLICY_ONLY, "platform", &[topic(&mapping)]);
    assert_eq!(code, Some(0), "{printed}");
}

#[test]
fn a_policy_that_lists_no_secret_is_shown_when_it_comes_and_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = "apiVersion: lastmile.dev/v1\nkind: SecretPolicy\nspec: {secrets: []}\n".to_owned();
    let (printed, code) = change(folder.path(), POLICY_ONLY, "platform", &[none]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("+ SecretPolicy\n") && !printed.contains("no subscription changes"));
    let (printed, code) = change(folder.path(), PRUNE, "platform", &[]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("- SecretPolicy\n    every secret may be sent anywhere"), "{printed}");
}
