//! Chance that can be had again: numbers that follow from a seed, and the seed of a run.
//!
//! A test that fails by chance prints the command that repeats it ([`replay_command`]): the seed is taken
//! from the variable [`SEED_VARIABLE`] where it is set.

/// The variable that tells a test its seed.
pub const SEED_VARIABLE: &str = "PAGEMILL_SIM_SEED";

/// The seed told by the environment, or this one.
pub fn seed_or(default: u64) -> u64 {
    std::env::var(SEED_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The command that runs a test again with the same seed.
pub fn replay_command(package: &str, test: &str, seed: u64) -> String {
    format!("{SEED_VARIABLE}={seed} cargo test -p {package} {test}")
}

/// Numbers that follow from a seed (SplitMix64, Steele, Lea and Flood 2014).
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.draw()) * u128::from(bound);
        // infallible: less than `bound`
        u64::try_from(wide >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_again_and_another_seed_others() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [(); 8].map(|()| random.below(1000))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert!(draw(9).iter().all(|number| *number < 1000));
    }
}
