"""Text that was cut into words, put together again."""

import html
import re



def detokenize(text, german=False):
    """Plain text from one cut into words by the Moses tokenizer, with compounds split at ##AT##-##AT##."""
    opening, closing = ("([{„‚", "”“’") if german else ("([{“‘", "”’")
    text = html.unescape(text.replace(" ##AT##-##AT## ", "-"))
    text = re.sub(rf" ([.,;:!?%)\]}}…{closing}]+)(?= |$)", r"\1", text)
    text = re.sub(rf"([{re.escape(opening)}$£€]) ", r"\1", text)
    text = re.sub(r'(?<!\S)" (.*?) "(?![^\s.,;:!?)])', r'"\1"', text)
    text = re.sub(r"(?<=\S) / (?=\S)", "/", text)
    return text if german else re.sub(r" '(?=(?:s|t|re|ve|ll|d|m)\b)", "'", text, flags=re.IGNORECASE)
