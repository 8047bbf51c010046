//! A map of so many entries and so many bytes: what was not asked for longest is forgotten first.
//!
//! Invariant: what it holds is within its limits, but for a last entry that is larger than they are.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// The map.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    entries: HashMap<K, Entry<V>>,
    limits: Limits,
    /// Bytes of all of them.
    bytes: usize,
    /// How often it was asked: what tells which was asked for last.
    asked: u64,
}

/// What a map may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) entries: usize,
    pub(crate) bytes: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    bytes: usize,
    /// When it was asked for last.
    last: u64,
}

impl<K: Hash + Eq + Clone, V> Recent<K, V> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { entries: HashMap::new(), limits, bytes: 0, asked: 0 }
    }

    /// The value of a key.
    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.asked += 1;
        let entry = self.entries.get_mut(key)?;
        entry.last = self.asked;
        Some(&entry.value)
    }

    /// Keeps a value, which takes so many bytes.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: usize) {
        self.remove(&key);
        while self.entries.len() >= self.limits.entries
            || (self.bytes + bytes > self.limits.bytes && !self.entries.is_empty())
        {
            let last = self.entries.iter().min_by_key(|(_, entry)| entry.last);
            let Some(last) = last.map(|(key, _)| key.clone()) else { break };
            self.remove(&last);
        }
        self.asked += 1;
        self.bytes += bytes;
        self.entries.insert(key, Entry { value, bytes, last: self.asked });
    }

    fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(map: &Recent<u32, ()>) -> Vec<u32> {
        let mut keys: Vec<u32> = map.entries.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn what_was_not_asked_for_longest_goes_first() {
        let mut map = Recent::new(Limits { entries: 3, bytes: 100 });
        for key in [1, 2, 3] {
            map.insert(key, (), 10);
        }
        assert!(map.get(&1).is_some());
        map.insert(4, (), 10);
        assert_eq!(keys(&map), [1, 3, 4]);
        map.insert(5, (), 85);
        assert_eq!(keys(&map), [4, 5]);
        map.insert(5, (), 20);
        assert_eq!((keys(&map), map.bytes), (vec![4, 5], 30));
        map.insert(6, (), 1000);
        assert_eq!(keys(&map), [6]);
    }
}
