"""Reading files, exports and stores as items: walking, a reader for each format, origin."""

from colmem.adapters.importing.items import FIELDS
from colmem.adapters.importing.reading import Problem, Reading
from colmem.adapters.importing.run import Import
from colmem.adapters.importing.sources import Options, Scan, Source, scan

__all__ = ["FIELDS", "Import", "Options", "Problem", "Reading", "Scan", "Source", "scan"]
