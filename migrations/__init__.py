"""The schema, one numbered step a file.

`SCHEMA_VERSION` is what `PRAGMA user_version` says after the last step; it stands here, apart
from the steps, because every command compares it and only a migration loads them.
"""

APPLICATION_ID = 0x696E6278  # "inbx", for PRAGMA application_id
SCHEMA_VERSION = 8
