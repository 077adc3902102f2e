"""The code of templates for Jinja; compiling the template of the kernel takes longer than rendering it."""

from __future__ import annotations

from base64 import b64decode, b64encode

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from kanegen.codegen.kept import TEXTS


class TemplateCode(BytecodeCache):
    """The code of templates that this process has compiled, or an earlier one that had the same sources."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give the code of a template to Jinja, which ignores it if the source is another one."""
        code = TEXTS.get(bucket.key)
        if code is not None:
            bucket.bytecode_from_string(b64decode(code))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of a template."""
        TEXTS[bucket.key] = b64encode(bucket.bytecode_to_string()).decode()
