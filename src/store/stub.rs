//! A placeholder until the stores land: keeps nothing.
#![allow(missing_docs)]
use super::*;
use std::path::Path;
macro_rules! stub {
    ($n:ident) => {
        #[derive(Default)]
        pub struct $n {}
        impl $n {
            pub fn open(_: &Path) -> Result<Self, StoreError> {
                Ok(Self {})
            }
        }
        impl Store for $n {
            fn header(&self, r: &str) -> Result<RunHeader, StoreError> {
                Err(StoreError::UnknownRun(r.into()))
            }
            fn load(&self, r: &str) -> Result<StoredRun, StoreError> {
                Err(StoreError::UnknownRun(r.into()))
            }
            fn program(&self, _: ProgramHash) -> Result<ProgramSource, StoreError> {
                Err(StoreError::UnknownRun("".into()))
            }
            fn commit(
                &self,
                g: &[Commit],
            ) -> Result<Vec<Result<Committed, StoreError>>, StoreError> {
                Ok(g.iter()
                    .map(|c| {
                        Ok(Committed {
                            receipt: Receipt {
                                revision: c.header.revision,
                            },
                            change_bytes: 0,
                            snapshot_bytes: None,
                        })
                    })
                    .collect())
            }
            fn due(&self, _: Timestamp, _: usize) -> Result<Vec<(Timestamp, Name)>, StoreError> {
                Ok(vec![])
            }
            fn next_due_at(&self) -> Result<Option<Timestamp>, StoreError> {
                Ok(None)
            }
            fn runnable(&self) -> Result<Vec<Name>, StoreError> {
                Ok(vec![])
            }
            fn list(&self, _: Option<&str>, _: usize) -> Result<Vec<RunHeader>, StoreError> {
                Ok(vec![])
            }
            fn loops(&self, _: &str) -> Result<Vec<LoopState>, StoreError> {
                Ok(vec![])
            }
            fn iterations(
                &self,
                _: &str,
                _: Option<&str>,
                _: usize,
            ) -> Result<Vec<IterationRow>, StoreError> {
                Ok(vec![])
            }
            fn history(
                &self,
                _: &str,
                _: u64,
                _: usize,
            ) -> Result<Vec<(u64, HistoryEvent)>, StoreError> {
                Ok(vec![])
            }
            fn delete(&self, _: &str) -> Result<(), StoreError> {
                Ok(())
            }
        }
    };
}
stub!(MemoryStore);
stub!(SledStore);
