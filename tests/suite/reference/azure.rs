//! The loops of Azure, in the tree of a Loom workflow. In Azure a failed iteration does not end a loop, and after a
//! failed item the other items of a foreach still run.

use windlass_model::hir::{Block, Step, StepKind};
use windlass_model::model::OnError;

pub fn convert(block: &mut Block) {
    match block {
        Block::Sequence(steps) => steps.iter_mut().for_each(convert_step),
        Block::Dag(steps) => {
            let steps = steps.iter_mut();
            steps.for_each(|step| convert_step(&mut step.step));
        }
        Block::Graph(_) => {}
    }
}

fn convert_step(step: &mut Step) {
    step.catch.iter_mut().for_each(convert);
    match &mut step.kind {
        StepKind::Loop(spec) => {
            spec.survives_failure = true;
            convert(&mut spec.body);
        }
        StepKind::ForEach(spec) => {
            if spec.on_error == OnError::Stop {
                spec.on_error = OnError::Finish;
            }
            convert(&mut spec.body);
        }
        StepKind::Block(block) => convert(block),
        StepKind::If { arms, otherwise } => {
            arms.iter_mut().for_each(|(_, block)| convert(block));
            convert(otherwise);
        }
        StepKind::Switch { cases, default, .. } => {
            cases.iter_mut().for_each(|(_, block)| convert(block));
            convert(default);
        }
        StepKind::Parallel { branches, .. } => {
            branches.iter_mut().for_each(|(_, block)| convert(block));
        }
        _ => {}
    }
}
