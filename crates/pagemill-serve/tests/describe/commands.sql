\d
\d app.*
\d+ app.*
\dS pg_class
\dt
\dt app.*
\di app.*
\dv app.*
\dm app.*
\ds app.*
\dE app.*
\dt+ app.*
\dv+ app.*
\dn
\dn+
\du
\du+
\dg
\dT app.*
\dT+ app.*
\df app.*
\dfS+ app.*
\da app.*
\do app.*
\do+ app.*
\dD app.*
\dD+ app.*
\dC app.*
\dp app.*
\z app.orders
\ddp
\dx
\db
\dc
\dd
\des+
\dew+
\det+
\dF
\dFd+
\dFp
\dFt
\dL
\dL+
\dO
\dP
\drds
\dRp
\dRp+
\dRs
\dX app.*
\dy+
\dA+
\dAc btree int4
\dAf btree int4
\dAo btree int4
\dAp btree int4
\l
\sv app.totals
\sv+ app.totals
\encoding
\sf app.add
\sf+ app.trg
\d+ app.log_def
