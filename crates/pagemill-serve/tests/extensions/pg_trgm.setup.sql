create extension pg_trgm;
create table phrases (id integer primary key, phrase text, note varchar(40));
insert into phrases values
  (1, 'the quick brown fox', 'animals'),
  (2, 'The Quick Brown Foxes', 'Animal'),
  (3, 'lazy dog', 'a dog'),
  (4, 'lazy dogs sleep', 'dogs'),
  (5, '', ''),
  (6, null, null),
  (7, 'two words', 'words'),
  (8, 'Größe und Maße', 'groesse'),
  (9, 'данные о данных', 'data'),
  (10, '日本語のテキスト', 'text'),
  (11, '... !!! ???', '---'),
  (12, 'x', 'y'),
  (13, 'word_with_underscores and-dashes', 'under_score'),
  (14, 'a b c d e', 'a b'),
  (15, 'aaaaaaaaaaaa', 'aaa');
