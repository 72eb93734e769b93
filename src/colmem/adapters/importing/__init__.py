"""Reading files and folders as items: walking, one reader for each format, origin metadata."""

from colmem.adapters.importing.items import FIELDS
from colmem.adapters.importing.reading import Problem, Reading
from colmem.adapters.importing.run import Import
from colmem.adapters.importing.sources import Options, Scan, Source, read, scan

__all__ = ["FIELDS", "Import", "Options", "Problem", "Reading", "Scan", "Source", "read", "scan"]
