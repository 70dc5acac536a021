//! `amplifier plan …`.

use amplifier_app::prepare::{PlanFile, PrepareError};
use serde_json::{Value, json};

use crate::args::ValidateArgs;
use crate::exit::Exit;
use crate::render;

/// `amplifier plan validate FILE`.
pub fn validate(args: &ValidateArgs) -> Exit {
    let file = match PlanFile::read(&args.file) {
        Ok(file) => file,
        // A file that can be read and is not JSON is an invalid plan; a file that cannot be read is a wrong call.
        Err(error @ PrepareError::Json { .. }) if args.json => {
            let check = json!({"name": "json", "passed": false, "message": error.to_string(), "severity": "error", "pointer": ""});
            let summary = "FAILED: 0/1 checks passed (1 errors, 0 warnings)";
            render::json(
                &json!({"passed": false, "summary": summary, "errors": [check], "warnings": [], "checks": [check]}),
            );
            return Exit::Failure;
        }
        Err(error) => {
            render::error(&error, error.hint());
            return if matches!(error, PrepareError::Json { .. }) { Exit::Failure } else { Exit::Usage };
        }
    };
    let validation = &file.validation;
    if args.json {
        render::json(&placed(&file));
    } else {
        for check in validation.errors().chain(validation.warnings()) {
            render::out(&file.describe(check));
        }
        render::out(&validation.summary());
    }
    if validation.passed() { Exit::Success } else { Exit::Failure }
}

/// The report for programs, each failed check with its line and column.
fn placed(file: &PlanFile) -> Value {
    let mut report = file.validation.to_json();
    let sections = [
        ("errors", file.validation.errors().collect::<Vec<_>>()),
        ("warnings", file.validation.warnings().collect()),
        ("checks", file.validation.checks.iter().collect()),
    ];
    for (section, checks) in sections {
        let Some(entries) = report.get_mut(section).and_then(Value::as_array_mut) else { continue };
        for (entry, check) in entries.iter_mut().zip(checks) {
            if let (Value::Object(entry), Some(position)) = (entry, file.position(check)) {
                entry.insert("line".to_owned(), Value::from(position.line));
                entry.insert("column".to_owned(), Value::from(position.column));
            }
        }
    }
    report
}
