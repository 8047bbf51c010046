-- Levenshtein's distance
select levenshtein('GUMBO', 'GAMBOL'), levenshtein('', ''), levenshtein('a', ''), levenshtein('', 'abc'), levenshtein('Grün', 'grun'), levenshtein('日本', '日本語')
select levenshtein('GUMBO', 'GAMBOL', 2, 1, 1), levenshtein('kitten', 'sitting', 1, 1, 5), levenshtein('abc', '', 1, 7, 1), levenshtein('', 'abc', 7, 1, 1), levenshtein('abc', 'xyz', 0, 0, 0)
select levenshtein('kitten', 'sitting', -1, 3, 2), levenshtein('kitten', 'sitting', 3, -1, 2), levenshtein('ab', 'cd', 100000000, 1, 100000000)
select levenshtein(repeat('a', 255), repeat('b', 255)), levenshtein('', repeat('ä', 300)), levenshtein(repeat('a', 300), '', 1, 2, 1)
select levenshtein(repeat('a', 256), 'b')
select levenshtein('b', repeat('ä', 256))
select levenshtein(repeat('ä', 255), 'ä')
select levenshtein(null, 'a'), levenshtein('a', null), levenshtein('a', 'b', null, 1, 1)
select levenshtein_less_equal('extensive', 'exhaustive', 2), levenshtein_less_equal('extensive', 'exhaustive', 4), levenshtein_less_equal('extensive', 'exhaustive', -1), levenshtein_less_equal('extensive', 'exhaustive', 0), levenshtein_less_equal('same', 'same', 0)
select levenshtein_less_equal('', 'abc', 1), levenshtein_less_equal('abc', '', 1), levenshtein_less_equal('a', 'abcdef', 2), levenshtein_less_equal('Grün', 'grun', 1)
select levenshtein_less_equal('extensive', 'exhaustive', 1, 2, 3, 5), levenshtein_less_equal('ab', 'cd', 1, 1, 3, 4), levenshtein_less_equal('ab', 'cd', 1, 1, 3, 3), levenshtein_less_equal('abcdef', 'fedcba', 2, 3, 4, 9)
select levenshtein_less_equal(repeat('a', 256), 'b', 1)
select levenshtein_less_equal('a', 'b', null)
-- Soundex
select soundex('hello world!'), soundex('Anne'), soundex('Ann'), soundex('Andrew'), soundex('Margaret'), soundex('Tymczak'), soundex('Pfister'), soundex('Ashcraft')
select soundex(''), soundex('123'), soundex('  x'), soundex('a1b'), soundex('a2b'), soundex('ö'), soundex('Müller'), soundex(null), text_soundex('Anne')
select difference('Anne', 'Ann'), difference('Anne', 'Andrew'), difference('Anne', 'Margaret'), difference('', ''), difference('', '1'), difference('', 'a'), difference(null, 'a')
-- Metaphone
select metaphone('GUMBO', 4), metaphone('Thumb', 10), metaphone('Knight', 10), metaphone('School', 10), metaphone('Christ', 10), metaphone('Schwartz', 10), metaphone('Xylophone', 10), metaphone('fox', 2)
select metaphone('Aesop', 9), metaphone('gnome', 9), metaphone('Which', 9), metaphone('Wright', 9), metaphone('water', 9), metaphone('signed', 9), metaphone('edge', 9), metaphone('laugh', 9), metaphone('nation', 9), metaphone('social', 9)
select metaphone('science', 9), metaphone('accident', 9), metaphone('back', 9), metaphone('yes, sir', 9), metaphone('Élan vital', 9), metaphone('1 2 3', 9), metaphone('', 0), metaphone('', 999), metaphone(null, 4)
select metaphone('GUMBO', 0)
select metaphone('GUMBO', -1)
select metaphone('GUMBO', 256)
select metaphone(repeat('a', 256), 4)
select metaphone(repeat('ä', 128), 4)
select length(metaphone(repeat('ab', 127), 255))
-- Double Metaphone
select dmetaphone('gumbo'), dmetaphone_alt('gumbo'), dmetaphone(''), dmetaphone_alt(''), dmetaphone(null), dmetaphone_alt(null)
select w, dmetaphone(w), dmetaphone_alt(w) from unnest(array['Schmidt', 'Smith', 'Schwarzenegger', 'Thomas', 'Thumb', 'Knight', 'Wright', 'Xavier', 'Caesar', 'Chianti', 'Michael', 'chorus', 'chore', 'architect', 'Wachtler', 'McHugh', 'Czerny', 'focaccia', 'McClellan', 'bellocchio', 'bacchus', 'accident', 'succeed', 'bacci']) w
select w, dmetaphone(w), dmetaphone_alt(w) from unnest(array['mac caffrey', 'mac gregor', 'edge', 'edgar', 'ghislane', 'hugh', 'bough', 'broughton', 'laugh', 'tough', 'cagney', 'agnes', 'tagliaro', 'geist', 'danger', 'biaggi', 'rogier', 'hochmeier', 'jose', 'San Jacinto', 'Jankelowicz', 'bajador', 'cabrillo', 'gallegos']) w
select w, dmetaphone(w), dmetaphone_alt(w) from unnest(array['dumb', 'campbell', 'raspberry', 'island', 'sugar', 'Sholm', 'school', 'schooner', 'schermerhorn', 'resnais', 'artois', 'nation', 'van Thijn', 'Wasserman', 'Womo', 'Who', 'Arnow', 'Filipowicz', 'Wicz', 'breaux', 'zhao', 'pizza', 'Фёдоров', 'façade', 'Ǆ', 'a b c', '42']) w
-- a table
select id, name, soundex(name), metaphone(name, 6), dmetaphone(name), dmetaphone_alt(name) from names order by id
select a.name, b.name, levenshtein(a.name, b.name) from names a join names b on levenshtein_less_equal(a.name, b.name, 2) <= 2 and a.id < b.id order by a.id, b.id
select dmetaphone(name), count(*), min(name), max(name) from names group by 1 order by 1
select distinct soundex(name) from names order by 1
select name, levenshtein(name, 'Smith') from names order by levenshtein(name, 'Smith'), name
select a.id, b.id from names a join names b on soundex(a.name) = soundex(b.name) and a.id < b.id order by 1, 2
select name, difference(name, 'Smythe') from names where difference(name, 'Smythe') > 2 order by name
