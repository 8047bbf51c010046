-- Trigrams.
select show_trgm('word')
select show_trgm('Two Words')
select show_trgm('')
select show_trgm('...')
select show_trgm('a')
select show_trgm('a b c')
select show_trgm('foo-bar_baz 42')
select show_trgm('Größe')
select show_trgm('müller MÜLLER')
select show_trgm('данные')
select show_trgm('日本語')
select show_trgm(null)
select array_length(show_trgm('the quick brown fox'), 1), array_ndims(show_trgm('')), cardinality(show_trgm('...'))
select pg_typeof(show_trgm('x')), pg_typeof(similarity('a', 'b')), pg_typeof('a' % 'b')
-- Likeness of whole texts.
select similarity('word', 'two words')
select similarity('word', 'word'), similarity('word', 'WORD'), similarity('word', 'drow')
select similarity('', ''), similarity('a', ''), similarity('...', 'a')
select similarity(null, 'a'), similarity('a', null)
select similarity('Größe', 'größer'), similarity('данные', 'Данных'), similarity('日本語', '日本')
select similarity('wow', 'WOWa '), similarity('wow', ' WOW ')
select similarity_dist('word', 'two words'), 'word' <-> 'two words', 'a' <-> 'a', 'a' <-> 'b', '' <-> ''
select 'word' % 'two words', 'word' % 'wor', 'abc' % 'xyz', '' % '', null % 'a'
select similarity_op('word', 'two words')
-- Of a part of a text.
select word_similarity('word', 'two words'), word_similarity('two words', 'word')
select word_similarity('', 'a'), word_similarity('a', ''), word_similarity('', ''), word_similarity(null, 'a')
select word_similarity('fox', 'the quick brown foxes'), word_similarity('brown fox', 'the quick brown foxes')
select word_similarity('Größe', 'die größeren Maße'), word_similarity('dog', 'cat')
select 'word' <% 'two words', 'two words' %> 'word', 'two words' <% 'word', 'word' %> 'two words'
select 'word' <<-> 'two words', 'two words' <->> 'word', 'two words' <<-> 'word', 'word' <->> 'two words'
select word_similarity_op('word', 'two words'), word_similarity_commutator_op('word', 'two words')
select word_similarity_dist_op('word', 'two words'), word_similarity_dist_commutator_op('word', 'two words')
-- Of whole words of a text.
select strict_word_similarity('word', 'two words'), strict_word_similarity('two words', 'word')
select strict_word_similarity('', 'a'), strict_word_similarity('a', ''), strict_word_similarity('', ''), strict_word_similarity('a', null)
select strict_word_similarity('brown fox', 'the quick brown foxes'), strict_word_similarity('dog', 'cat')
select 'word' <<% 'two words', 'two words' %>> 'word', 'two words' <<% 'word', 'word' %>> 'two words'
select 'word' <<<-> 'two words', 'two words' <->>> 'word', 'two words' <<<-> 'word', 'word' <->>> 'two words'
select strict_word_similarity_op('word', 'two words'), strict_word_similarity_commutator_op('word', 'two words')
select strict_word_similarity_dist_op('word', 'two words'), strict_word_similarity_dist_commutator_op('word', 'two words')
select show_limit()
-- Arguments of other types.
select similarity('word'::varchar, 'words'::char(8)), similarity('word'::name, 'words')
select similarity(1, 2)
select similarity('a')
select 1 % 'a'
-- A table.
select id, show_trgm(phrase) from phrases order by id
select id, similarity(phrase, 'quick fox'), word_similarity('quick fox', phrase), strict_word_similarity('quick fox', phrase) from phrases order by id
select id, similarity(phrase, note), phrase <-> note, phrase <<-> note, phrase <->> note, phrase <<<-> note, phrase <->>> note from phrases order by id
select id, phrase % note, phrase <% note, phrase %> note, phrase <<% note, phrase %>> note from phrases order by id
select id from phrases where phrase % 'lazy dog' order by id
select id from phrases where 'words' <% phrase order by id
select id from phrases where phrase %> 'dogs' order by phrase <->> 'dogs', id
select id from phrases where phrase %>> 'dogs' order by phrase <->>> 'dogs', id
select id, phrase <-> 'lazy' as distance from phrases order by distance, id limit 5
select a.id, b.id from phrases a join phrases b on a.phrase % b.phrase and a.id < b.id order by 1, 2
select a.id, max(similarity(a.phrase, b.phrase)) from phrases a, phrases b where a.id <> b.id group by a.id order by a.id
select similarity(phrase, 'lazy') > 0.3, count(*) from phrases group by 1 order by 1
select distinct trigram collate "C" from (select unnest(show_trgm(phrase)) as trigram from phrases) x order by 1 limit 30
select max(word_similarity('dog', phrase)), min(phrase <-> 'dog'), sum(similarity(phrase, 'dog')) from phrases where id < 5
set pg_trgm.similarity_threshold = 0.8;
select 'word' % 'words', 'word' % 'word', show_limit(), similarity('word', 'words');
set pg_trgm.word_similarity_threshold = 0.9;
select 'word' <% 'two words', 'words' <% 'two words', 'two words' %> 'words';
set pg_trgm.strict_word_similarity_threshold = 0.2;
select 'wor' <<% 'two words', 'two words' %>> 'wor';
reset pg_trgm.similarity_threshold;
select 'word' % 'words', show_limit();
