//! Prints conditions as text for people. Operators have the names that Event Grid defines.

use std::fmt;

use super::{Arrays, Condition, NumberTest, Test, TextMatch, TextTest};

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.test {
            Test::Number(test) => {
                write!(f, "{key} Number{} {}", operator(test), numbers(test))
            }
            Test::NotNumber(test) => {
                write!(f, "{key} NumberNot{} {}", operator(test), numbers(test))
            }
            Test::Bool(expected) => write!(f, "{key} BoolEquals {expected}"),
            Test::Text(test) => {
                write!(f, "{key} String{} {}", relation(test.how()), texts(test))
            }
            Test::NotText(test) => {
                write!(f, "{key} StringNot{} {}", relation(test.how()), texts(test))
            }
            Test::IsNullOrUndefined => write!(f, "{key} IsNullOrUndefined"),
            Test::IsNotNull => write!(f, "{key} IsNotNull"),
        }?;
        f.write_str(match self.arrays {
            Arrays::Elements => " (including elements of arrays)",
            Arrays::Leaves => " (any value in arrays)",
            Arrays::OtherType | Arrays::Fail => "",
        })
    }
}

fn operator(test: &NumberTest) -> &'static str {
    match test {
        NumberTest::In(_) => "In",
        NumberTest::LessThan(_) => "LessThan",
        NumberTest::LessThanOrEquals(_) => "LessThanOrEquals",
        NumberTest::GreaterThan(_) => "GreaterThan",
        NumberTest::GreaterThanOrEquals(_) => "GreaterThanOrEquals",
        NumberTest::InRange(_) => "InRange",
    }
}

fn numbers(test: &NumberTest) -> String {
    match test {
        NumberTest::In(values) => {
            values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        NumberTest::LessThan(value)
        | NumberTest::LessThanOrEquals(value)
        | NumberTest::GreaterThan(value)
        | NumberTest::GreaterThanOrEquals(value) => value.to_string(),
        NumberTest::InRange(ranges) => {
            let ranges = ranges.iter().map(|(least, most)| format!("{least} to {most}"));
            ranges.collect::<Vec<_>>().join(", ")
        }
    }
}

fn relation(how: TextMatch) -> &'static str {
    match how {
        TextMatch::In => "In",
        TextMatch::Contains => "Contains",
        TextMatch::BeginsWith => "BeginsWith",
        TextMatch::EndsWith => "EndsWith",
    }
}

fn texts(test: &TextTest) -> String {
    let texts: Vec<String> = test.values().iter().map(|text| format!("{text:?}")).collect();
    let case = if test.is_case_sensitive() { " (case-sensitive)" } else { "" };
    format!("{}{case}", texts.join(", "))
}
