use delivery::document::findings::Findings;
use delivery::document::node::{Key, Node, Value};

use super::parsed::DEPTH_MAX;
use super::*;

fn parsed(text: &str) -> (Vec<String>, Vec<String>) {
    parse_named("f", text)
}

fn parse_named(name: &str, text: &str) -> (Vec<String>, Vec<String>) {
    let findings = Findings::new([name].into_iter());
    let documents = parse(name, text).into_documents(0, &findings);
    let shown = documents.iter().map(show).collect();
    (shown, findings.into_sorted().iter().map(ToString::to_string).collect())
}

fn show(node: &Node) -> String {
    let inner = match &node.value {
        Value::Null => "~".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Fraction(number) => number.json(),
        Value::Text(text) => format!("{text:?}"),
        Value::List(list) => format!("[{}]", list.iter().map(show).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            let entry = |(key, node): &(Key, Node)| {
                format!(
                    "{}@{}:{} {}",
                    key.value,
                    key.position.line,
                    key.position.column,
                    show(node)
                )
            };
            format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    };
    format!("{inner}@{}:{}", node.position.line, node.position.column)
}

#[test]
fn every_node_and_key_knows_its_place() {
    let text = "a: [1, -2]\nöü: {503: yes, x: 1.5}\nn:\nt: true\nq: '1'\n";
    let shown = "{a@1:1 [1@1:5, -2@1:8]@1:4, öü@2:1 {503@2:6 \"yes\"@2:11, x@2:16 1.5@2:19}@2:5, \
                 n@3:1 ~@3:2, t@4:1 true@4:4, q@5:1 \"1\"@5:4}@1:1";
    assert_eq!(parsed(text), (vec![shown.to_owned()], vec![]));
}

#[test]
fn json_is_read_with_its_escapes_and_tabs() {
    let (shown, findings) = parsed("{\n\t\"a\":\"\\ud83d\\ude00\\/\\n\",\"b\":[true,null]}");
    assert_eq!(shown, ["{a@2:2 \"😀/\\n\"@2:6, b@2:25 [true@2:30, ~@2:35]@2:29}@1:1"]);
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn documents_are_separated_by_lines_or_in_a_list_and_empty_ones_are_skipped() {
    assert_eq!(parsed("---\n# nothing\n---\na: 1\n---\n~\n...\n").0, ["{a@4:1 1@4:4}@4:1"]);
    assert_eq!(parsed(r#"[{"a":1},null,"b"]"#).0, ["{a@1:3 1@1:7}@1:2", "\"b\"@1:15"]);
    assert_eq!(parsed(""), (vec![], vec![]));
    assert_eq!(parsed("\u{feff}a: 1").0.len(), 1);
}

#[test]
fn an_alias_is_replaced_where_it_is_used() {
    assert_eq!(parsed("a: &x 1\nb: *x\n").0, ["{a@1:1 1@1:7, b@2:1 1@2:4}@1:1"]);
}

#[test]
fn a_number_keeps_its_digits_wherever_it_is_written() {
    let far = "ü".repeat(2500);
    for (text, number) in [
        ("1.5", "1.5"),
        ("123456789.123456789", "123456789.123456789"),
        ("-12345678901234567890123", "-12345678901234567890123"),
        ("1e22", "1e22"),
        ("1.50E-3", "1.50E-3"),
        ("+1.5", "1.5"),
        ("-.5", "-0.5"),
        ("5.", "5"),
        ("5.e3", "5e3"),
        ("!!float 2.50", "2.50"),
    ] {
        for before in ["", "\u{feff}", "x: ü\n---\n", "\r\n# ü\r\n", &format!("# {far}\n")] {
            for file in [
                format!("{before}a: {text} # 9.9"),
                format!("{before}{{\"a\":[\"ü😀\",{text},7]}}"),
            ] {
                let (shown, findings) = parsed(&file);
                assert_eq!(findings, Vec::<String>::new(), "{file}");
                let shown = shown.last().expect("a document");
                assert!(shown.contains(&format!(" {number}@")), "{file}: {shown}");
            }
        }
    }
    let alias = parsed("a: &x 123456789.123456789\nb: [*x, 7.25]\n").0;
    assert!(alias[0].contains("[123456789.123456789@2:5, 7.25@"), "{alias:?}");
}

#[test]
fn a_duplicate_key_invalidates_only_its_document() {
    let (shown, findings) = parsed("a: 1\nb: {503: 1, 503: 2}\n---\nc: 1\n");
    assert_eq!(shown, ["{c@4:1 1@4:4}@4:1"]);
    assert_eq!(findings, ["f:2:13: error: 503 is defined twice in one mapping; keep one of them"]);
}

#[test]
fn a_syntax_error_ends_its_file_but_keeps_the_documents_before_it() {
    for (text, position) in [
        ("a: 1\n---\nb: [1\nc: 2\n", "f:4:"),
        ("a: 1\n---\nb: 1\n  c: 2\n", "f:4:4:"),
        ("a: 1\n---\nb: *x\n", "f:3:4:"),
        ("a: 1\n---\nb: \"x\n", "f:"),
        ("a: 1\n---\nb: !secret x\n", "f:3:"),
    ] {
        let (shown, findings) = parsed(text);
        assert_eq!(shown.len(), 1, "{text}");
        assert_eq!(findings.len(), 1, "{text}");
        assert!(findings[0].starts_with(position), "{findings:?}");
    }
}

#[test]
fn size_nesting_and_aliases_are_bounded() {
    let deep = format!("a: {}{}", "[".repeat(100), "]".repeat(100));
    let bomb = (1..12).fold("a0: &a0 [x, x]\n".to_owned(), |text, level| {
        let alias = format!("*a{}, ", level - 1).repeat(9);
        format!("{text}a{level}: &a{level} [{alias}]\n")
    });
    for text in [deep, bomb, " ".repeat(FILE_MAX_BYTES + 1)] {
        let (shown, findings) = parsed(&text);
        assert_eq!((shown.len(), findings.len()), (0, 1), "{findings:?}");
    }
}

#[test]
fn what_nests_as_deep_as_definitions_of_kubernetes_do_is_read() {
    let nested = |levels: usize| format!("{}1{}", "{a: ".repeat(levels), "}".repeat(levels));
    let (shown, findings) = parsed(&format!("{}\n---\nb: 1\n", nested(DEPTH_MAX)));
    assert_eq!((shown.len(), findings), (2, vec![]));
    let (shown, findings) = parsed(&format!("b: 1\n---\n{}\n", nested(DEPTH_MAX + 1)));
    assert_eq!((shown.len(), findings.len()), (1, 1));
    assert!(
        findings[0].contains("error: nested deeper than 64 levels; the file is read up to here"),
        "{findings:?}"
    );
}

#[test]
fn what_a_file_perhaps_is_that_is_no_yaml_is_said() {
    for (text, help) in [
        ("a: {{ .Values.name }}\n  b: 1\n", "the file is a template"),
        ("{{- if .Values.on }}\na: 1\n{{- end }}\n", "the file is a template"),
        ("{\"a\": 1}\n{\"b\": 2}\n", "separate several JSON documents"),
        ("{\"a\": 1}\n// more\n{\"b\": 2}\n", "separate several JSON documents"),
        ("{\"a\": [1, \"b\": 2}\n", "f:1:14: error: not valid JSON: unexpected colon"),
        ("a: [1\n", ""),
    ] {
        let (_, findings) = parsed(text);
        assert_eq!(findings.len(), 1, "{text}: {findings:?}");
        assert!(findings[0].contains(help), "{text}: {findings:?}");
    }
}

#[test]
fn comments_in_json_are_skipped_wherever_they_stand() {
    let text = "\u{feff}/* top */ // of the file\n{\n  // {\"no\": 1}\n  \"ä\": /* ü */ [1, // one\n   2 /* two */, \
                /*, 3*/],\n  \"url\": \"http://h/*x*/\", /**/ \"b\": {\"c\": null,},\n}\n// end\n";
    let shown = "{ä@4:3 [1@4:17, 2@5:4]@4:16, url@6:3 \"http://h/*x*/\"@6:10, \
                 b@6:32 {c@6:38 ~@6:43}@6:37}@2:1";
    assert_eq!(parsed(text), (vec![shown.to_owned()], vec![]));
    assert_eq!(parse_named("t.JSON", text), (vec![shown.to_owned()], vec![]));
    assert_eq!(parse_named("t.json", "// nothing\n"), (vec![], vec![]));
    assert_eq!(parsed("/*/ {\"a\": 1} */ {\"b\": 1}").0, ["{b@1:18 1@1:23}@1:17"]);
}

#[test]
fn what_begins_like_json_and_is_none_is_yaml() {
    for (text, expected) in [
        ("{a: 1}", "{a@1:2 1@1:5}@1:1"),
        ("{\"a\": 1, b: https://h/x}", "{a@1:2 1@1:7, b@1:10 \"https://h/x\"@1:13}@1:1"),
        ("{a: 'x', # see // there\n b: 2}", "{a@1:2 \"x\"@1:5, b@2:2 2@2:5}@1:1"),
        ("{a: 'it // is'}", "{a@1:2 \"it // is\"@1:5}@1:1"),
        ("[*x, 1]", ""),
    ] {
        let (shown, findings) = parsed(text);
        assert_eq!(shown.concat(), expected, "{text}: {findings:?}");
        assert_eq!(findings.is_empty(), !expected.is_empty(), "{text}: {findings:?}");
    }
}

#[test]
fn json_with_a_comment_is_never_read_as_yaml() {
    for (text, expected) in [
        (
            "{\"a\": 'x', // one\n \"b\": 1}",
            "f:1:7: error: not valid JSON: single-quoted strings are not allowed",
        ),
        ("{\"a\": 1 // one\n \"b\": 1}", "f:1:8: error: not valid JSON: expected comma"),
        ("{\n /* one \"b\": 1}", "f:2:2: error: not valid JSON: unterminated comment block"),
        ("{ // one\n a: 1}", "f:2:2: error: not valid JSON: expected string for object property"),
    ] {
        assert_eq!(parsed(text), (vec![], vec![expected.to_owned()]), "{text}");
    }
}

#[test]
fn the_name_of_a_json_file_decides_alone() {
    for (text, expected) in [
        ("{a: 1}", "t.json:1:2: error: not valid JSON: expected string for object property"),
        (
            "a: 1\n",
            "t.json:1:1: error: not valid JSON: unexpected word; a .json file must contain JSON: \
             rename a YAML file to .yaml",
        ),
        ("{\"a\": 1", "t.json:1:1: error: not valid JSON: unterminated object"),
        ("{\"a\": [1 2]}", "t.json:1:9: error: not valid JSON: expected comma"),
        (
            "{\"a\": 1,\n \"a\": 2}",
            "t.json:2:2: error: a is defined twice in one mapping; keep one of them",
        ),
        ("[{} {}]", "t.json:1:4: error: not valid JSON: expected comma"),
        ("{\"a\": +1}", "t.json:1:7: error: not valid JSON: unary plus on numbers is not allowed"),
    ] {
        assert_eq!(parse_named("t.json", text), (vec![], vec![expected.to_owned()]), "{text}");
    }
    let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
    let (shown, findings) = parse_named("t.json", &deep);
    assert_eq!((shown.len(), findings.len()), (0, 1));
    assert!(findings[0].starts_with("t.json:1:65: error: nested deeper than 64"), "{findings:?}");
}

#[test]
fn documents_of_both_formats_are_read_side_by_side() {
    let text = "a: 1\n--- # next\n{\"b\": 2, // two\n \"c\": 3}\n...\n[{\"d\": 4.50}, /* five */ 5]\n---\ne: {f: 6}\n";
    let expected = [
        "{a@1:1 1@1:4}@1:1",
        "{b@3:2 2@3:7, c@4:2 3@4:7}@3:1",
        "{d@6:3 4.50@6:8}@6:2",
        "5@6:26",
        "{e@8:1 {f@8:5 6@8:8}@8:4}@8:1",
    ];
    assert_eq!(parsed(text), (expected.map(str::to_owned).to_vec(), vec![]));
    let (shown, findings) = parsed("{\"a\": 1 // x\n \"b\": 1}\n---\nc: 1\n---\nd: [\n");
    assert_eq!(shown, ["{c@4:1 1@4:4}@4:1"]);
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(findings[0].starts_with("f:1:8: error: not valid JSON"), "{findings:?}");
    assert!(findings[1].contains(": error: not valid YAML"), "{findings:?}");
}
