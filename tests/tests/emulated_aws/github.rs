//! The roles of `infra/github.yaml` allow their own workflow, and nothing of the other workflow.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use adapters::machine::Machine;
use adapters::table::DynamoTable;
use aws_sdk_sqs::config::{Credentials, SharedCredentialsProvider};
use delivery::delivery::health::DestinationKey;
use delivery::delivery::health::news::{NEWS, News};
use delivery::delivery::health::shared::Document as _;
use delivery::ports::Clock as _;
use delivery::table::{Expected, ItemKey, Table as _};
use lastmile_tests::built::binary;
use local::aws::local_clients;
use serde_json::{Value, json};

use super::stack::{Stack, script};
use super::{Deployment, on_deployment};

/// The namespace of the role that may change only one.
const OWN: &str = "of-github";
/// Another namespace, which has [`OWN`] as its prefix.
const OTHER: &str = "of-github-too";
/// The value of the parameter for all namespaces.
const ALL: &str = "*";
/// The owner of the subscriptions that the roles apply. `--prune` removes everything else of this
/// owner.
const OWNER: &str = "github";
/// The owner of the signed subscriptions. With a separate owner, a concurrent test does not remove
/// them.
const OWNER_OF_SIGNED: &str = "github-with-keys";
/// The namespace whose public keys are published.
const WITH_KEYS: &str = "of-github-with-keys";
/// The namespace of the test of the table.
const OF_TABLE: &str = "of-github-with-table";
const OWNER_OF_TOLD: &str = "github-that-tells";
/// The bucket of public keys.
const KEYS_BUCKET: &str = "keys-of-github";

/// Returns the policy of a role of the template for this stack, with `namespace` and the owner as
/// parameters.
fn policy(stack: &Stack, role: &str, namespace: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/github.yaml");
    let mut text = fs::read_to_string(path).expect("the template is there");
    for (name, value) in [
        ("AWS::Partition", "aws"),
        ("AWS::Region", "us-east-1"),
        ("AWS::AccountId", "000000000000"),
        ("Application", "lastmile"),
        ("ConfigBucketName", stack.output("ConfigBucketName")),
        ("KeysBucketName", KEYS_BUCKET),
        ("TableName", stack.output("TableName")),
        ("Namespace", namespace),
        ("Owner", OWNER),
    ] {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    let template: Value = serde_saphyr::from_str(&text).expect("a template is YAML");
    let policy = &template["Resources"][role]["Properties"]["Policies"][0]["PolicyDocument"];
    // Without tags, a statement with a condition is a list of the condition's name and the
    // statement. This environment has a bucket of keys and a table, but no KMS key.
    let statements = policy["Statement"].as_array().expect("a list").iter();
    let statements = statements.filter_map(|statement| match statement[0].as_str() {
        Some("HasKeysBucket" | "HasTable") => Some(&statement[1]),
        Some(_) => None,
        None => Some(statement),
    });
    let mut statements: Vec<Value> = statements.cloned().collect();
    for statement in &mut statements {
        // Without tags, a condition is a list of its name, the value if it is true, and the value
        // if it is false.
        if statement["Resource"][0] == "ChangesAll" {
            let chosen = if namespace == ALL { 1 } else { 2 };
            statement["Resource"] = statement["Resource"][chosen].take();
        }
    }
    json!({"Version": "2012-10-17", "Statement": statements}).to_string()
}

/// The program, with the permissions of the role.
struct Caller<'a> {
    stack: &'a Stack,
    session: Value,
}

/// Returns true if this role may list the keys with this prefix in the config bucket.
async fn may_list(caller: &Caller<'_>, prefix: &str) -> bool {
    let value = |field: &str| caller.session[field].as_str().expect("a credential");
    let credentials = aws_sdk_s3::config::Credentials::new(
        value("AccessKeyId"),
        value("SecretAccessKey"),
        Some(value("SessionToken").to_owned()),
        None,
        "github",
    );
    let listed = caller.stack.listed_by(credentials, prefix).await;
    listed.inspect_err(|code| assert_eq!(code, "AccessDenied", "{prefix}")).is_ok()
}

impl<'a> Caller<'a> {
    fn new(stack: &'a Stack, role: &str, namespace: &str) -> Self {
        let port = stack.endpoint.rsplit(':').next().expect("the endpoint has a port");
        let name = format!("github-{role}-{}", if namespace == ALL { "all" } else { namespace });
        let session = script("role.sh", &[port, &name, &policy(stack, role, namespace)]);
        Self { stack, session: serde_json::from_str(&session).expect("role.sh prints JSON") }
    }

    /// Applies subscriptions with these names as the workflow does.
    fn apply(&self, namespace: &str, names: &[&str], to: &str) -> Output {
        let owner = ["--owner", OWNER, "--prune"];
        self.run(namespace, names, &[&["apply", "--yes", "--to", to], &owner[..]].concat())
    }

    /// The table, with the permissions of this role.
    fn table(&self) -> DynamoTable {
        let value = |field: &str| self.session[field].as_str().expect("a credential").to_owned();
        let (id, secret) = (value("AccessKeyId"), value("SecretAccessKey"));
        let credentials = Credentials::new(id, secret, Some(value("SessionToken")), None, "github");
        let config = local_clients(&self.stack.endpoint).into_builder();
        let config = config.credentials_provider(SharedCredentialsProvider::new(credentials));
        DynamoTable::new(&config.build(), self.stack.output("TableName").to_owned())
    }

    /// Runs a command with a file of subscriptions with these names.
    fn run(&self, namespace: &str, names: &[&str], arguments: &[&str]) -> Output {
        let document = |name: &&str| {
            format!(
                "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
                 metadata: {{namespace: {namespace}, topic: orders, name: {name}}}\n\
                 spec: {{destination: {{url: 'https://{name}.example.com/'}}}}\n"
            )
        };
        self.run_with(&names.iter().map(document).collect::<Vec<_>>().join("---\n"), arguments)
    }

    /// Runs a command with a file that has this text.
    fn run_with(&self, text: &str, arguments: &[&str]) -> Output {
        let folder = tempfile::tempdir().expect("a folder can be made");
        fs::write(folder.path().join("subscriptions.yaml"), text).expect("a file can be written");
        let mut command = Command::new(binary("lastmile"));
        command.args(arguments).args(["-f", "subscriptions.yaml"]).current_dir(folder.path());
        for (name, field) in [
            ("AWS_ACCESS_KEY_ID", "AccessKeyId"),
            ("AWS_SECRET_ACCESS_KEY", "SecretAccessKey"),
            ("AWS_SESSION_TOKEN", "SessionToken"),
        ] {
            command.env(name, self.session[field].as_str().expect("a credential"));
        }
        command.env("AWS_ENDPOINT_URL", &self.stack.endpoint);
        command.env("AWS_REGION", "us-east-1").env("AWS_EC2_METADATA_DISABLED", "true");
        command.env("AWS_CONFIG_FILE", "/dev/null").env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
        command.env("NO_PROXY", "127.0.0.1").output().expect("the program runs")
    }
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

fn assert_succeeded(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

fn assert_denied(output: &Output) {
    assert_eq!(output.status.code(), Some(1), "{}", said(output));
    assert!(said(output).contains("AccessDenied"), "{}", said(output));
}

#[test]
fn the_role_of_a_pull_request_checks_and_that_of_the_branch_applies() {
    on_deployment(|Deployment { stack, .. }| async move {
        let at = |prefix: &str| format!("s3://{}/{prefix}/", stack.output("ConfigBucketName"));
        let subscriptions = at("subscriptions");
        let check = ["check", "--stack", "lastmile"];
        let pull_request = Caller::new(stack, "CheckRole", ALL);
        assert_succeeded(&pull_request.run(OWN, &["billing"], &check));
        assert_denied(&pull_request.apply(OWN, &["billing"], &subscriptions));

        let branch = Caller::new(stack, "ApplyRole", ALL);
        assert_succeeded(&branch.run(OWN, &["billing"], &check));
        for names in [&["billing", "stock"][..], &["billing"]] {
            assert_succeeded(&branch.apply(OWN, names, &subscriptions));
        }
        for other in ["other", "subscriptions-too"] {
            assert_denied(&branch.apply(OWN, &["billing"], &at(other)));
        }
        assert!(may_list(&branch, "subscriptions/").await);
        for prefix in ["", "_", "subscriptions"] {
            assert!(!may_list(&branch, prefix).await, "{prefix}");
        }

        let of_one = Caller::new(stack, "ApplyRole", OWN);
        for names in [&["billing", "stock"][..], &["billing"]] {
            assert_succeeded(&of_one.apply(OWN, names, &subscriptions));
        }
        assert_denied(&of_one.apply(OTHER, &["billing"], &subscriptions));
        assert!(!may_list(&of_one, "_").await);
    });
}

#[test]
fn the_role_of_the_branch_publishes_the_public_keys_of_its_namespace() {
    on_deployment(|Deployment { stack, .. }| async move {
        stack.new_bucket(KEYS_BUCKET).await;
        let subscriptions = format!("s3://{}/subscriptions/", stack.output("ConfigBucketName"));
        let of_one = Caller::new(stack, "ApplyRole", WITH_KEYS);
        let signed = |namespace: &str| {
            format!(
                "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
                 metadata: {{namespace: {namespace}, topic: signed, name: billing}}\n\
                 spec:\n  destination:\n    url: https://billing.example.com/\n    signing:\n      secrets: ['ssm:/a']\n      \
                 publicKeys: ['whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=']\n"
            )
        };
        let apply = |namespace: &str| {
            let keys = format!("s3://{KEYS_BUCKET}");
            let arguments = ["apply", "--yes", "--to", &subscriptions, "--owner", OWNER_OF_SIGNED];
            of_one
                .run_with(&signed(namespace), &[&arguments[..], &["--public-keys", &keys]].concat())
        };
        assert_succeeded(&apply(WITH_KEYS));
        let set = stack.object(KEYS_BUCKET, &format!("{WITH_KEYS}/signed/billing.json")).await;
        assert!(set.contains("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"), "{set}");
        let denied = apply(OTHER);
        assert_denied(&denied);
        assert!(said(&denied).contains(KEYS_BUCKET), "{}", said(&denied));
    });
}

#[test]
fn the_role_of_the_branch_writes_news_into_the_table_and_nothing_else() {
    on_deployment(|Deployment { stack, .. }| async move {
        let of_one = Caller::new(stack, "ApplyRole", OF_TABLE);
        let arguments = ["apply", "--yes", "--stack", "lastmile", "--owner", OWNER_OF_TOLD];
        let applied = of_one.run(OF_TABLE, &["billing"], &arguments);
        assert_succeeded(&applied);
        // A note would state that functions find the change later.
        assert!(!said(&applied).contains("within five minutes"), "{}", said(&applied));

        let table = of_one.table();
        let now_ms = Machine.now_ms();
        let topic = format!("{OF_TABLE}/orders").parse().expect("a topic");
        let (news, url) = (News::of_topic(&topic, now_ms), "https://billing.example.com/");
        let key = DestinationKey::new(OF_TABLE, &url.parse().expect("an address"));
        let write = async |item: ItemKey| {
            let written = table.replace(&item, &news.entry(), Expected::Anything, now_ms).await;
            written.map_err(|error| error.problem)
        };
        assert_eq!(write(news.item()).await, Ok(true));
        let elsewhere = ["@NEWS", "@news2", "*", ""];
        let elsewhere = elsewhere.map(|partition| ItemKey::new(partition, "x".to_owned()));
        let of_destination = [key.health_item(OF_TABLE), key.limits_item(OF_TABLE)];
        for item in of_destination.into_iter().chain(elsewhere) {
            let denied = write(item.clone()).await.expect_err("IAM denies it");
            assert!(denied.contains("AccessDenied"), "{item}: {denied}");
        }
        let read = table.entry(&news.item(), now_ms).await.expect_err("IAM denies it");
        assert!(read.problem.contains("AccessDenied"), "{read}");
        assert!(table.newest(NEWS, 1).await.is_err(), "nor does it read them");
        let pull_request = Caller::new(stack, "CheckRole", OF_TABLE).table();
        let written =
            pull_request.replace(&news.item(), &news.entry(), Expected::Anything, now_ms).await;
        assert!(written.is_err(), "a pull request tells nobody anything");
    });
}
