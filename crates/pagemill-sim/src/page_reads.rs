//! How the kernel serves one read, or one call that announces reads: page by page, waiting where it must.
//!
//! A read is a task that can be stopped and gone on with, so that the main thread, the workers and the ring
//! all use the same one.
//!
//! ```text
//!   page absent ──► plan a window ──► look up the block map ──► put into the request queue
//!                                      (waits for its I/O)        (waits while that is full)
//!   page on its way ──► wait          page there ──► next page
//! ```
//!
//! Invariants: a task goes through its plan before it looks at the next page; a page marked as on its way
//! is in the plan of exactly one task or in an I/O.

use std::collections::VecDeque;
use std::ops::Range;

use crate::contents::MAP_PAGES;
use crate::machine::{Machine, Target};
use crate::page_cache::{PAGE, PageKey, PageState};
use crate::readahead::Window;
use crate::request_queue::Piece;

/// One read, or one announcement.
#[derive(Debug)]
pub(crate) struct ReadTask {
    pub(crate) file: usize,
    /// The open file description, whose readahead is used.
    pub(crate) open: usize,
    /// The first byte that was not served yet.
    pub(crate) at: u64,
    /// The byte after the last one wanted.
    pub(crate) end: u64,
    /// Who reads.
    pub(crate) thread: usize,
    plan: VecDeque<Step>,
    /// For a read past the page cache: what it waits for.
    direct: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    ReadMap(u32),
    AwaitMap(u32),
    ReadPages(u32, u32),
    ReadDirectly(u32, u32),
    Put(usize, Piece),
}

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A page on its way.
    Page(PageKey),
    /// Room in a request queue.
    Queue(usize),
    /// A block map of a file.
    Map(usize, u32),
    /// An I/O.
    Io(u64),
}

fn pages(at: u64, end: u64) -> (u32, u32) {
    let page = |place: u64| u32::try_from(place).unwrap_or(u32::MAX);
    (page(at / PAGE), page(end.div_ceil(PAGE)))
}

impl ReadTask {
    pub(crate) fn new(file: usize, open: usize, bytes: Range<u64>, thread: usize) -> Self {
        let (plan, direct) = (VecDeque::new(), Vec::new());
        Self { file, open, at: bytes.start, end: bytes.end, thread, plan, direct }
    }

    fn key(&self, page: u32) -> PageKey {
        PageKey { file: self.file, page }
    }
}

impl Machine {
    /// A read past the page cache.
    pub(crate) fn direct_task(&self, mut task: ReadTask) -> ReadTask {
        let (first, end) = pages(task.at, task.end);
        self.plan_extents(&mut task, first, end, Step::ReadDirectly);
        task.at = task.end;
        task
    }

    /// Reads announced by advice: all pages that are not there, up to what one call reads.
    pub(crate) fn announcement(&mut self, mut task: ReadTask) -> ReadTask {
        let limit = self.settings.willneed_limit.map(|limit| limit.max(self.settings.read_ahead));
        let end = limit.map_or(task.end, |limit| task.end.min(task.at.saturating_add(limit)));
        let (first, end) = pages(task.at, end);
        self.plan_window(&mut task, Window { start: first, len: end - first, mark: None });
        task.at = task.end;
        task
    }

    /// Goes on with a task until it is done, or has to wait.
    pub(crate) fn advance(&mut self, task: &mut ReadTask) -> Option<Wait> {
        loop {
            if let Some(wait) = self.go_through_plan(task) {
                return Some(wait);
            }
            if task.at >= task.end {
                return task.direct.iter().map(|io| Wait::Io(*io)).find(|wait| !self.is_over(wait));
            }
            let (page, end) = pages(task.at, task.end);
            let key = task.key(page);
            if self.cache.state(key) == PageState::Absent {
                let window = self.readaheads[task.open].missed(page, end - page);
                self.plan_window(task, window);
                if self.cache.state(key) == PageState::Absent {
                    self.plan_window(task, Window { start: page, len: 1, mark: None });
                }
                continue;
            }
            if self.cache.unmark(key) && self.plan_next_window(task, page, end - page) {
                continue;
            }
            if self.cache.state(key) == PageState::Reading {
                return Some(Wait::Page(key));
            }
            self.cache.touch(key);
            self.readaheads[task.open].used(page);
            task.at = u64::from(page + 1) * PAGE;
        }
    }

    /// Plans the window after the marked page; false when nothing was planned.
    fn plan_next_window(&mut self, task: &mut ReadTask, page: u32, wanted: u32) -> bool {
        if self.settings.yields_to_congestion && self.volume.is_congested() {
            return false;
        }
        let most = self.readaheads[task.open].most;
        let hole = self.cache.next_hole(task.key(page), most + 1);
        let window = self.readaheads[task.open].marked(page, wanted, hole);
        if let Some(window) = window {
            self.plan_window(task, window);
        }
        !task.plan.is_empty()
    }

    /// Takes on the pages of a window that are not there yet.
    fn plan_window(&mut self, task: &mut ReadTask, window: Window) {
        let (_, file_end) = pages(0, self.files[task.file].contents.len());
        let end = window.start.saturating_add(window.len).min(file_end);
        let mut begun = None;
        for page in window.start..end {
            let key = task.key(page);
            if self.cache.state(key) == PageState::Absent {
                self.cache.begin(key, window.mark == Some(page));
                begun = begun.or(Some(page));
            } else if let Some(first) = begun.take() {
                self.plan_extents(task, first, page, Step::ReadPages);
            }
        }
        if let Some(first) = begun {
            self.plan_extents(task, first, end, Step::ReadPages);
        }
    }

    /// Plans to read pages extent by extent, each after its block map.
    fn plan_extents(
        &self,
        task: &mut ReadTask,
        first: u32,
        end: u32,
        step: impl Fn(u32, u32) -> Step,
    ) {
        let file = &self.files[task.file];
        let mut at = first;
        while at < end {
            let extent = file.layout.extent(at..end);
            let map = at / MAP_PAGES;
            if file.layout.block_maps && file.maps.get(map as usize) != Some(&2) {
                task.plan.extend([Step::ReadMap(map), Step::AwaitMap(map)]);
            }
            task.plan.push_back(step(extent.start, extent.end));
            at = extent.end;
        }
    }

    fn go_through_plan(&mut self, task: &mut ReadTask) -> Option<Wait> {
        while let Some(step) = task.plan.pop_front() {
            let layout = self.files[task.file].layout;
            match step {
                Step::ReadMap(map) => {
                    let state = &mut self.files[task.file].maps[map as usize];
                    if *state == 0 {
                        *state = 1;
                        self.begin(task, Target::Map(task.file, map), layout.map(map), PAGE);
                    }
                }
                Step::AwaitMap(map) => {
                    let wait = Wait::Map(task.file, map);
                    if !self.is_over(&wait) {
                        task.plan.push_front(step);
                        return Some(wait);
                    }
                }
                Step::ReadPages(first, end) => {
                    let target = Target::Pages(task.file, first, end);
                    self.begin(task, target, layout.page(first), u64::from(end - first) * PAGE);
                }
                Step::ReadDirectly(first, end) => {
                    let len = u64::from(end - first) * PAGE;
                    let io = self.begin(task, Target::Direct, layout.page(first), len);
                    task.direct.push(io);
                }
                Step::Put(queue, piece) => {
                    if !self.volume.put(queue, piece, self.now) {
                        task.plan.push_front(step);
                        return Some(Wait::Queue(queue));
                    }
                }
            }
        }
        None
    }

    /// Begins an I/O; its pieces are next in the plan.
    fn begin(&mut self, task: &mut ReadTask, target: Target, start: u64, len: u64) -> u64 {
        let (io, pieces) = self.begin_io(target, start, len, task.thread);
        for (queue, piece) in pieces.into_iter().rev() {
            task.plan.push_front(Step::Put(queue, piece));
        }
        io
    }
}
