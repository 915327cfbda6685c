"""Chat templates in the style of well-known models, written for these tests."""

CHATML = """\
{% for message in messages %}{% if loop.first and message['role'] != 'system' %}\
{{ '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' }}{% endif %}\
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

WITH_TOOLS = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for tool in tools %}
        {{- tool | tojson(indent=2) }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- elif messages[0].role != 'system' %}
    {{- '<|im_start|>system\\nBe brief.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {%- set parts = message.content.split('</think>') %}
        {{- '<|im_start|>assistant\\n' + parts[-1].lstrip('\\n') + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

WITH_HEADERS = """\
{{- bos_token }}
{% set date = strftime_now('%Y') %}
{% for message in messages %}
    {% set header = '<|' + message['role'] + '|>\\n\\n' %}
    {% if message['role'] == 'system' %}
{{ header }}Year digits: {{ date | length }}
{{ message['content'] | trim }}{{ eos_token }}
    {% else %}
{{ header }}{{ message['content'] | trim }}{{ eos_token }}
    {% endif %}
{% endfor %}
{% if add_generation_prompt %}
{{ '<|assistant|>\\n\\n' }}
{% endif %}
"""

WITH_LOOP_CONTROLS = """\
{% for message in messages %}
  {% if message.role == 'system' %}{% continue %}{% endif %}
  {% if loop.index > 3 %}{% break %}{% endif %}
[{{ message.role }}] {{ message | tojson }}
{% endfor %}
{% generation %}kept{% endgeneration %}
{% set ns = namespace(last='') %}
{% for message in messages %}{% set ns.last = message.content %}{% endfor %}
{{ ns.last }}"""

WITHOUT_SYSTEM = """\
{% if messages[0].role == 'system' %}\
{{ raise_exception('System role not supported') }}{% endif %}\
{% for message in messages %}{{ message.role }}: {{ message.content }}{% endfor %}"""

ALL = {
    "chatml": CHATML,
    "tools": WITH_TOOLS,
    "headers": WITH_HEADERS,
    "loop controls": WITH_LOOP_CONTROLS,
    "without system": WITHOUT_SYSTEM,
}
