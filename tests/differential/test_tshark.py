"""Fresh traffic of real clients, decoded as tshark decodes it.

Needs Debian's tcpdump and tshark, and the right to capture.
"""

import pytest

from tests.differential.answers import check_equal, messages_of
from tests.differential.traffic import CLIENTS, record

pytestmark = [
    pytest.mark.differential,
    pytest.mark.long,
    # kafka-python reads its own message definitions in a way that Python 3.11 warns of.
    pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning"),
]


@pytest.mark.parametrize("name", CLIENTS)
def test_decoded_as_tshark_decodes_it(name, broker, tmp_path):
    path = record(name, broker, tmp_path)
    assert check_equal(path) >= 10
    assert [message.problem for message in messages_of(path) if message.body() is None] == []
